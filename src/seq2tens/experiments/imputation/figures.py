"""Figures of the imputation experiment: learning curves, calibration, and frames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from seq2tens.experiments.imputation.pictures import SHOWN
from seq2tens.experiments.report.figures import MARKERS
from seq2tens.experiments.report.style import BLUE, FAINT, INK, ORANGE, WIDTH, styled

LINES = ("missing", "imputed", "original")
_COLORS = (ORANGE, BLUE, INK, FAINT)


class Line(NamedTuple):
    """The line of a model in a figure."""

    label: str
    x: Sequence[float]
    y: Sequence[float]


@styled
def curves(lines: Sequence[Line], title: str) -> Figure:
    """Plot a line per model over epochs."""
    figure, axes = _axes(3.6)
    _draw(axes, lines)
    axes.set_xlabel("epoch")
    axes.set_ylabel(title)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


@styled
def calibration(lines: Sequence[Line], predicted: str, observed: str) -> Figure:
    """Plot observed against predicted frequencies; a calibrated model lies on the diagonal."""
    figure, axes = _axes(4.4)
    axes.plot([0, 1], [0, 1], color=FAINT, lw=1, ls="--")
    _draw(axes, lines)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    axes.set_xlabel(predicted)
    axes.set_ylabel(observed)
    return figure


@styled
def frames(path: Path) -> Figure:
    """Show a saved picture with names for its rows."""
    from matplotlib.image import imread

    image = imread(path)
    height, width = image.shape[:2]
    figure = Figure(figsize=(WIDTH, 0.1 + (WIDTH - 0.8) * height / width))
    axes = figure.add_axes((0.8 / WIDTH, 0, 1 - 0.8 / WIDTH, 1))
    # Without resampling, pixels do not change and the file stays small.
    axes.imshow(image, interpolation="none", aspect="auto")
    row = height / (len(LINES) * SHOWN)
    axes.set_yticks([row * (i + 0.5) for i in range(len(LINES) * SHOWN)], LINES * SHOWN)
    axes.tick_params(length=0)
    axes.set_xticks([])
    axes.spines[:].set_visible(False)
    return figure


def _axes(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.add_subplot()
    axes.grid(True)
    return figure, axes


def _draw(axes: Axes, lines: Sequence[Line]) -> None:
    for i, line in enumerate(lines):
        color, marker = _COLORS[i % len(_COLORS)], MARKERS[i % len(MARKERS)]
        axes.plot(line.x, line.y, label=line.label, lw=1.4, ms=4, color=color, marker=marker)
    axes.figure.legend(loc="outside lower center", ncols=2)
