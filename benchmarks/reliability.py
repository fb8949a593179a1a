"""Reliability diagrams: accuracy by predicted probability, from `benchmarks/reliability.csv`.

`python -m benchmarks.accuracy run` writes the file for the first seed of each model; its report plots it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from benchmarks.accuracy_rows import BINS, COMPARED, OURS, Bin
from benchmarks.pages import markdown
from seq2tens.experiments.report.style import BLUE, FAINT, INK, styled

MARKERS = ("o", "s", "^", "D", "v")


class Curve(NamedTuple):
    """The curve of a model: fraction of predictions in each bin, their mean probability and accuracy."""

    model: str
    share: Float[np.ndarray, " bins"]
    confidence: Float[np.ndarray, " bins"]
    accuracy: Float[np.ndarray, " bins"]

    @property
    def calibration_error(self) -> float:
        """Expected calibration error: mean absolute difference of probability and accuracy."""
        return float(self.share @ np.abs(self.confidence - self.accuracy))


def common(bins: list[Bin]) -> list[str]:
    """The data sets that all models in the file have finished."""
    by_model = [{b.dataset for b in bins if b.model == model} for model in {b.model for b in bins}]
    return sorted(set.intersection(*by_model)) if by_model else []


def curve(bins: list[Bin], model: str, datasets: list[str]) -> Curve:
    """The curve of a model; all data sets have equal weight."""
    sums = np.zeros((3, BINS))
    for dataset in datasets:
        selected = [b for b in bins if (b.dataset, b.model) == (dataset, model)]
        total = sum(b.series for b in selected)
        for b in selected:
            sums[:, b.number] += np.array([b.series, b.confidence, b.correct]) / total
    share, confidence, correct = sums / len(datasets)
    counted = np.where(share > 0, share, 1.0)
    return Curve(model, share, confidence / counted, correct / counted)


def section(bins: list[Bin], picture: str) -> str:
    """A section with a table and the figure of `diagram`."""
    datasets = common(bins)
    lines = [
        [
            c.model,
            f"{c.share @ c.confidence:.3f}",
            f"{c.share @ c.accuracy:.3f}",
            f"{c.calibration_error:.3f}",
        ]
        for c in curves(bins)
    ]
    header = ["model", "mean probability of the predicted class", "accuracy", "expected calibration error"]
    return (
        f"### Reliability\n\nTest series of the {len(datasets)} data sets that all have finished, seed 0; "
        f"every data set counts the same.\n\n{markdown(header, lines)}\n\n![{caption(bins)}]({picture})\n"
    )


def curves(bins: list[Bin]) -> list[Curve]:
    """The curves of all models in the file, in the order of the tables."""
    known = {b.model for b in bins}
    return [curve(bins, model, common(bins)) for model in COMPARED if model in known]


def caption(bins: list[Bin]) -> str:
    """The caption of the figure."""
    errors = ", ".join(f"{c.model} {c.calibration_error:.3f}" for c in curves(bins))
    return f"Accuracy of predictions by the probability they were given; expected calibration error: {errors}"


@styled
def diagram(bins: list[Bin]) -> Figure:
    """Plot accuracy against probability; the size of a marker is the fraction of predictions."""
    figure = Figure(figsize=(4.2, 4.0), layout="constrained")
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1], color=FAINT, lw=1, ls=(0, (4, 3)), zorder=0)
    for c, marker in zip(curves(bins), MARKERS, strict=False):
        occupied = c.share > 0
        color = BLUE if c.model == OURS else INK
        ax.plot(c.confidence[occupied], c.accuracy[occupied], color=color, lw=1, alpha=0.6)
        sizes = 12 + 200 * c.share[occupied]
        ax.scatter(
            c.confidence[occupied], c.accuracy[occupied], s=sizes, color=color, marker=marker, label=c.model
        )
    ax.set(xlabel="probability of the predicted class", ylabel="accuracy", xlim=(0, 1.03), ylim=(0, 1.03))
    ax.legend(frameon=False, loc="lower right")
    ax.grid()
    return figure
