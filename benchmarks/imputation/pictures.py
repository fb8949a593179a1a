"""Figures of imputation errors and intervals."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from math import isnan

from matplotlib.figure import Figure

from benchmarks.imputation.data import PROTOCOLS, Hide
from benchmarks.imputation.rows import Row
from benchmarks.imputation.running import MODELS, UNTRAINED

SHOWN = Hide("points", 0.1)
# Models with the same colour have different markers.
MARKS = "osD^vP*X"


def errors_by_seconds(rows: list[Row]) -> Figure | None:
    """Plot MAE against seconds of a fit with a tenth hidden, for data sets on which networks were trained."""
    rows = [row for row in rows if row.cell.hide == SHOWN]
    datasets = [d for d in PROTOCOLS if any(r.dataset == d and r.model not in UNTRAINED for r in rows)]
    if not datasets:
        return None
    figure = Figure(figsize=(4 * len(datasets), 3.8), layout="constrained")
    for ax, dataset in zip(figure.subplots(1, len(datasets), squeeze=False)[0], datasets, strict=True):
        for model, (color, marker) in _styles().items():
            cells = [row for row in rows if (row.dataset, row.model) == (dataset, model)]
            if cells:
                seconds = statistics.fmean(map(_seconds, cells))
                mae = statistics.fmean(row.mae for row in cells)
                ax.plot(max(seconds, 0.01), mae, marker, color=color, markersize=8, label=model)
        ax.set(title=f"{dataset}, {SHOWN}", xscale="log", xlabel="seconds of a fit", ylabel="MAE")
        ax.grid(alpha=0.25)
    _legend(figure)
    return figure


def coverage(rows: list[Row]) -> Figure | None:
    """Plot the fraction of hidden entries in 90 % intervals, by data set and what was hidden."""
    rows = [row for row in rows if not isnan(row.coverage90)]
    columns = [
        (dataset, hide)
        for dataset, protocol in PROTOCOLS.items()
        for hide in protocol.hidden
        if any((row.dataset, row.cell.hide) == (dataset, hide) for row in rows)
    ]
    if not columns:
        return None
    figure = Figure(figsize=(8, 1 + 0.25 * len(columns)), layout="constrained")
    ax = figure.subplots()
    ax.axvspan(0.88, 0.92, color="#3b6fb6", alpha=0.15)
    for model, (color, marker) in _styles().items():
        points = [
            (statistics.fmean(cells), place)
            for place, column in enumerate(columns)
            if (
                cells := [
                    row.coverage90
                    for row in rows
                    if (row.model, row.dataset, row.cell.hide) == (model, *column)
                ]
            )
        ]
        if points:
            ax.plot(*zip(*points, strict=True), marker, color=color, markersize=6, alpha=0.8, label=model)
    ax.set_yticks(range(len(columns)), [f"{dataset}, {hide}" for dataset, hide in columns])
    ax.invert_yaxis()
    ax.set_xlabel("hidden entries inside intervals of 90 % (band: two points to either side)")
    ax.grid(alpha=0.25)
    _legend(figure)
    return figure


def _styles() -> dict[str, tuple[str, str]]:
    """Colour and marker of each model: ours are blue, those of PyPOTS orange, rules grey."""

    def color_of(model: str) -> str:
        return "#8a8a8a" if model in UNTRAINED else "#d1812c" if "PyPOTS" in model else "#3b6fb6"

    used: dict[str, int] = {}
    styles = {}
    for model in MODELS:
        color = color_of(model)
        styles[model] = color, MARKS[used.get(color, 0)]
        used[color] = used.get(color, 0) + 1
    return styles


def _legend(figure: Figure) -> None:
    labels = {
        label: handle
        for ax in figure.axes
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    order = [model for model in MODELS if model in labels]
    figure.legend([labels[model] for model in order], order, loc="outside lower center", ncols=4, fontsize=8)


def _seconds(row: Row) -> float:
    return row.fit_seconds if isnan(row.cpu_seconds) else row.cpu_seconds


PICTURES: dict[str, tuple[Callable[[list[Row]], Figure | None], str]] = {
    "imputation-errors.svg": (
        errors_by_seconds,
        "MAE against seconds of a fit, a tenth of the observed entries hidden, one panel a data set",
    ),
    "imputation-coverage.svg": (coverage, "Part of the hidden entries inside intervals of 90 %, by data set"),
}
