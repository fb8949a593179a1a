"""Tables and figures of docs/accuracy.md."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import wilcoxon

from benchmarks import csv_rows, reliability
from benchmarks.accuracy_rows import (
    COMPARED,
    GROUPS,
    OF_THE_PAPER,
    OURS,
    PAPER,
    RELIABILITY,
    RESULTS,
    UCR,
    Bin,
    Row,
    cell,
)
from benchmarks.pages import fill, markdown
from benchmarks.report import END, START
from seq2tens.experiments.report import figures
from seq2tens.experiments.report.statistics import Ranking, Scores, ranking
from seq2tens.experiments.report.style import BLUE, FAINT, INK, WIDTH, styled, svg

PAGE = Path("docs/accuracy.md")
DIAGRAM = "figures/accuracy-reliability.svg"
LEVEL = 0.05  # level of Nemenyi's test
DIGITS = 4  # accuracies that agree to this many digits are a draw


class Comparison(NamedTuple):
    """One model against another over data sets; `p_value` is that of Wilcoxon's signed-rank test."""

    wins: int
    draws: int
    losses: int
    p_value: float


class Group(NamedTuple):
    """Data sets that all models have finished; some columns of `scores` are published results of others."""

    name: str
    scores: Scores
    seconds: dict[str, float]  # core-seconds of fit and predict, summed over the `timed` data sets
    timed: int

    @property
    def mean(self) -> dict[str, float]:
        """The mean accuracy of every model."""
        return dict(zip(self.scores.models, self.scores.values.mean(axis=0).tolist(), strict=True))

    @property
    def ranking(self) -> Ranking:
        """The ranking of all models, including published ones."""
        return ranking(self.scores, LEVEL)


class Picture(NamedTuple):
    """A figure, its file in the documentation and its alternative text."""

    file: str
    text: str
    figure: Figure


def report(results: Path = RESULTS, page: Path = PAGE) -> None:
    """Insert the tables between the markers of a page, and write its figures to the folder `figures`."""
    rows = csv_rows.read(Row, results)
    drawn = [picture for group in groups(rows) for picture in pictures(group)]
    text = tables(rows)
    bins = csv_rows.read(Bin, results.with_name(RELIABILITY))
    if reliability.common(bins):
        drawn.append(Picture(DIAGRAM, reliability.caption(bins), reliability.diagram(bins)))
        text += f"\n{reliability.section(bins, DIAGRAM)}"
    fill(page, START, END, text)
    (page.parent / "figures").mkdir(exist_ok=True)
    for picture in drawn:
        # Pages may be dark, so the file needs its own background.
        image = svg(picture.figure, picture.text, "accuracy").replace(
            "<svg ", '<svg style="background:#fff" ', 1
        )
        (page.parent / picture.file).write_text(f"{image}\n")


def tables(rows: list[Row]) -> str:
    """A section for each group of data sets that can be compared, then the comparison with the paper."""
    sections = [_section(group, rows) for group in groups(rows)]
    return "\n".join([*sections, *_archive_section(rows), _paper_section(rows)])


def groups(rows: list[Row]) -> list[Group]:
    """The groups in which our model and another one have finished some data sets."""
    compared = []
    for name, datasets in GROUPS.items():
        models = _present(rows, datasets, COMPARED)
        common = finished(rows, datasets, models)
        if OURS in models and min(len(models), len(common)) > 1:
            compared.append(_group(name, common, models, rows))
    return compared


def _group(name: str, datasets: list[str], models: list[str], rows: list[Row]) -> Group:
    numbers = {
        d: {m: round(mean_accuracy(rows, d, m), DIGITS) for m in models}
        | {f"{label} (published)": value for label, value in UCR.get(d, {}).items()}
        for d in datasets
    }
    timed = [d for d in datasets if all(core_seconds(rows, d, m) for m in models)]
    seconds = {m: sum(core_seconds(rows, d, m) for d in timed) for m in models}
    return Group(name, Scores.from_dict(numbers), seconds, len(timed))


def _present(rows: list[Row], datasets: Sequence[str], models: Sequence[str]) -> list[str]:
    known = {row.model for row in rows if row.dataset in datasets}
    return [model for model in models if model in known]


def finished(rows: list[Row], datasets: Sequence[str], models: Sequence[str]) -> list[str]:
    """The data sets that all these models have finished."""
    cells = {row[:2] for row in rows}
    return [d for d in datasets if all((d, model) in cells for model in models)]


def mean_accuracy(rows: list[Row], dataset: str, model: str) -> float:
    return statistics.fmean(row.accuracy for row in cell(rows, dataset, model))


def total_seconds(rows: list[Row], datasets: Sequence[str], model: str) -> float:
    """The seconds of fit and predict, averaged over seeds and summed over data sets."""
    cells = [cell(rows, dataset, model) for dataset in datasets]
    return sum(statistics.fmean(row.seconds for row in seeds) for seeds in cells)


def core_seconds(rows: list[Row], dataset: str, model: str) -> float:
    """The mean core-seconds over the seeds for which they are known, or 0 if there are none."""
    noted = [row.core_seconds for row in cell(rows, dataset, model) if row.core_seconds]
    return statistics.fmean(noted) if noted else 0.0


def compare(scores: Scores, left: str, right: str) -> Comparison:
    """Compare two models; wins are those of the left one."""
    difference = np.round(scores.column(left) - scores.column(right), DIGITS)
    wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
    p_value = float(wilcoxon(difference).pvalue) if wins + losses else 1.0
    return Comparison(wins, len(difference) - wins - losses, losses, p_value)


def _section(group: Group, rows: list[Row]) -> str:
    n, all_of_it = len(group.scores.datasets), len(GROUPS[group.name])
    count = (
        f"All {n} data sets."
        if n == all_of_it
        else f"The {n} of {all_of_it} data sets that all have finished."
    )
    images = [f"![{picture.text}]({picture.file})\n" for picture in pictures(group)]
    parts = [
        f"### {group.name.capitalize()}\n",
        f"{count}\n",
        _summary(group),
        "",
        *images,
        _by_dataset(group, rows),
    ]
    return "\n".join([*parts, ""])


def _summary(group: Group) -> str:
    lines = []
    for model, mean in group.mean.items():
        seconds = f"{group.seconds[model]:.1f}" if group.timed and model in group.seconds else ""
        against = ["", ""]
        if model != OURS:
            test = compare(group.scores, OURS, model)
            against = [
                f"{test.wins} / {test.draws} / {test.losses}",
                f"{test.p_value:.2g}",
            ]
        lines.append([model, f"{mean:.4f}", *against, seconds])
    timed = f"core-seconds, {group.timed} data sets"
    header = ["model", "mean accuracy", f"wins / draws / losses of {OURS}", "Wilcoxon p", timed]
    return markdown(header, lines)


def _by_dataset(group: Group, rows: list[Row]) -> str:
    measured = list(group.seconds)
    published = [model for model in group.scores.models if model not in measured]
    lines = [
        [d, *(_accuracy(cell(rows, d, m)) for m in measured)]
        + [f"{group.scores.part([d], [m]).values.item():.3f}" for m in published]
        for d in sorted(group.scores.datasets, key=str.lower)
    ]
    return markdown(["data set", *measured, *published], lines)


def pictures(group: Group) -> list[Picture]:
    """The figures of mean ranks with their critical difference, and of accuracy against seconds."""
    ranking = group.ranking
    n = f"{len(group.scores.datasets)} {group.name} data sets"
    ranks = ", ".join(f"{m} {rank:.2f}" for m, rank in zip(ranking.models, ranking.ranks, strict=True))
    means = ", ".join(
        f"{m} {mean:.3f}" + (f" in {group.seconds[m]:.1f} s" if m in group.seconds else "")
        for m, mean in group.mean.items()
    )
    drawn = [
        Picture(
            f"figures/accuracy-{group.name}-ranks.svg",
            f"Mean ranks over {n}: {ranks}; critical difference {ranking.critical_difference:.2f} "
            f"(Nemenyi, level {LEVEL})",
            figures.critical_difference_diagram(ranking, {m: m for m in ranking.models}),
        )
    ]
    if group.timed:
        text = f"Mean accuracy over {n} against core-seconds of fit and predict: {means}"
        file = f"figures/accuracy-{group.name}-seconds.svg"
        drawn.append(Picture(file, text, accuracy_against_seconds(group)))
    return drawn


@styled
def accuracy_against_seconds(group: Group) -> Figure:
    """Plot a point for each model, or a line if its time is unknown."""
    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    ax = figure.subplots()
    for model, mean in group.mean.items():
        if model in group.seconds:
            ax.plot(group.seconds[model], mean, "o", color=BLUE if model == OURS else INK, ms=6)
            place = (group.seconds[model], mean)
            ax.annotate(model, place, (0, 7), textcoords="offset points", ha="center", parse_math=False)
        else:
            ax.axhline(mean, color=FAINT, lw=1, ls=(0, (4, 3)), zorder=0)
            edge = ax.get_yaxis_transform()
            ax.text(0.01, mean, model, va="bottom", color=FAINT, transform=edge, parse_math=False)
    ax.set_xscale("log")
    ax.margins(x=0.25, y=0.15)
    ax.set_xlabel(f"core-seconds of fit and predict, {group.timed} data sets together")
    ax.set_ylabel("mean accuracy")
    ax.grid()
    return figure


def _archive_section(rows: list[Row]) -> list[str]:
    """Compare our model with published ones on all univariate data sets that it has finished."""
    ours = finished(rows, GROUPS["univariate"], [OURS])
    if len(ours) < 2:
        return []
    summary = _summary(_group("univariate", ours, [OURS], rows))
    return [f"### Beside the archive's figures\n\n{len(ours)} univariate data sets.\n\n{summary}\n"]


def _paper_section(rows: list[Row]) -> str:
    """Compare accuracies with the paper's, then list seconds of fit and predict."""
    datasets = sorted({row.dataset for row in rows} & set(PAPER), key=str.lower)
    models = _present(rows, datasets, OF_THE_PAPER)
    common = finished(rows, datasets, models)
    accuracy = [
        [d, *(_accuracy(cell(rows, d, m)) for m in models), *(f"{v:.3f}" for v in PAPER[d].values())]
        for d in datasets
    ]
    seconds = [[d, *(_seconds(cell(rows, d, m)) for m in models)] for d in datasets]
    if common:
        means = [statistics.fmean(mean_accuracy(rows, d, m) for d in common) for m in models]
        means += [statistics.fmean(v) for v in zip(*(PAPER[d].values() for d in common), strict=True)]
        accuracy.append([f"mean of {len(common)}", *(f"{mean:.3f}" for mean in means)])
        sums = [f"{total_seconds(rows, common, m):.1f}" for m in models]
        seconds.append([f"sum of {len(common)}", *sums])
    published = [f"{name}, published" for name in next(iter(PAPER.values()))]
    return (
        f"### Beside the paper's figures\n\n{markdown(['data set', *models, *published], accuracy)}\n\n"
        f"### Seconds: fit + predict\n\n{markdown(['data set', *models], seconds)}\n"
    )


def _accuracy(seeds: list[Row]) -> str:
    values = [row.accuracy for row in seeds]
    if len(values) < 2:
        return f"{values[0]:.3f}" if values else ""
    return f"{statistics.fmean(values):.3f} ± {statistics.stdev(values):.3f} ({len(values)})"


def _seconds(seeds: list[Row]) -> str:
    if not seeds:
        return ""
    fit, predict = (statistics.fmean(values) for values in zip(*(row[4:6] for row in seeds), strict=True))
    return f"{fit:.1f} + {predict:.1f}"
