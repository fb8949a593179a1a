"""Figures and sentences of the README and the performance page, from results: `python -m benchmarks.charts`.

Draws docs/figures/accuracy.svg and docs/figures/speed.svg, and writes the text between the markers of the
README.
"""

from __future__ import annotations

import json
import statistics
from math import exp, log
from pathlib import Path
from typing import NamedTuple

import matplotlib
from matplotlib.figure import Figure

from benchmarks import csv_rows
from benchmarks.accuracy_rows import PAPER, Row
from benchmarks.pages import fill

ROOT = Path(__file__).parents[1]
ACCURACY, SPEED = ROOT / "benchmarks" / "accuracy.csv", ROOT / "benchmarks" / "results.json"
README, PERFORMANCE, FIGURES = ROOT / "README.md", ROOT / "docs" / "performance.md", ROOT / "docs" / "figures"
START, END = "<!-- measured -->", "<!-- end of measured -->"
NAMES = {
    "random-ls2t": "RandomLS2T",
    "fcn-ls2t": "FCN-LS2T",
    "ls2t": "LS2T",
    "fcn": "FCN",
    "resnet": "ResNet",
    "multirocket-hydra": "MultiROCKET-Hydra (aeon)",
    "dtw": "1-NN DTW (aeon)",
}
# Data sets of the paper; networks have not been run on the reconstruction of CMUsubject16.
DATASETS = sorted(set(PAPER) - {"CMUsubject16"})
RIVALS = ("random-ls2t", "multirocket-hydra")
OURS = {"random-ls2t", "fcn-ls2t", "ls2t"}
# Labels that would cover others: their offsets in points and their alignment.
LABELS = {
    "fcn-ls2t": ((-8, -3), "right"),
    "fcn": ((0, -17), "center"),
    "ls2t": ((0, -17), "center"),
    "multirocket-hydra": ((8, -3), "left"),
}
# Bars of the speed chart: suite, contender and label.
BARS = (
    ("forward_pass", "matmul", "forward pass: torch's matrix products alone"),
    ("forward_pass", "reference", "forward pass: the recursion in eager PyTorch"),
    ("training", "reference", "training step: the recursion in eager PyTorch"),
    ("signatures", "pysiglib", "signature: pySigLib"),
)


class Point(NamedTuple):
    """A model's mean accuracy, total seconds of fit and predict, and number of data sets."""

    accuracy: float
    seconds: float
    datasets: int


def points(rows: list[Row]) -> dict[str, Point]:
    """The points of models that have run on all data sets, averaged over seeds."""
    datasets = {row.dataset for row in rows}
    averages = {}
    for model in NAMES:
        cells = [[row for row in rows if (row.model, row.dataset) == (model, name)] for name in datasets]
        if all(cells):
            accuracy = statistics.fmean(statistics.fmean(row.accuracy for row in cell) for cell in cells)
            seconds = sum(statistics.fmean(row.seconds for row in cell) for cell in cells)
            averages[model] = Point(accuracy, seconds, len(datasets))
    return averages


def accuracy_chart(averages: dict[str, Point]) -> Figure:
    """Plot mean accuracy against seconds, one point per model."""
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    ax = figure.subplots()
    for model, point in averages.items():
        color = "#3b6fb6" if model in OURS else "#8a8a8a"
        ax.plot(point.seconds, point.accuracy, "o", color=color, markersize=9)
        label = f"{NAMES[model]} {point.accuracy:.3f}, {point.seconds:.0f} s"
        offset, side = LABELS.get(model, ((0, 9), "center"))
        ax.annotate(
            label,
            (point.seconds, point.accuracy),
            xytext=offset,
            textcoords="offset points",
            ha=side,
            fontsize=9,
            color=color,
        )
    number = next(iter(averages.values())).datasets
    ax.set_xscale("log")
    ax.margins(x=0.22, y=0.14)
    ax.set_xlabel(f"seconds to fit and predict {number} data sets, two CPU cores")
    ax.set_ylabel("mean test accuracy")
    ax.grid(alpha=0.25)
    return figure


def ratios(results: list[dict]) -> dict[str, float]:
    """The geometric means of ratios over the cases of a suite, by label."""
    means = {}
    for suite, contender, label in BARS:
        rows = [row for row in results if row["suite"] == suite and contender in row["contenders"]]
        means[label] = exp(statistics.fmean(log(row["contenders"][contender]["ratio"]) for row in rows))
    return means


def speed_chart(means: dict[str, float]) -> Figure:
    """Plot the times of others as multiples of ours."""
    figure = Figure(figsize=(8, 2.6), layout="constrained")
    ax = figure.subplots()
    labels = list(means)[::-1]
    bars = ax.barh(labels, [means[label] for label in labels], color="#3b6fb6")
    ax.bar_label(bars, fmt="%.1f×", padding=3)
    ax.axvline(1, color="black", linewidth=1)
    ax.margins(x=0.12)
    ax.set_xlabel("time as a multiple of ours (1 = as fast as seq2tens)")
    return figure


def sentences(averages: dict[str, Point]) -> str:
    """The paper's results and ours, in two sentences."""
    claimed = {
        name: statistics.fmean(PAPER[dataset][name] for dataset in DATASETS)
        for name in ("FCN64-LS2T64³", "FCN128", "LS2T64³")
    }
    ours = {name: f"{averages[name].accuracy:.3f}" for name in averages}
    number = next(iter(averages.values())).datasets
    random, rocket = (f"{ours[name]} in {averages[name].seconds:.0f} s" for name in RIVALS)
    return (
        f"- **The paper**, mean test accuracy over these {number} data sets: "
        f"FCN-LS2T {claimed['FCN64-LS2T64³']:.3f}, FCN {claimed['FCN128']:.3f}, "
        f"LS2T {claimed['LS2T64³']:.3f}.\n"
        f"- **Our runs**, default settings, trained much shorter: "
        f"FCN-LS2T {ours['fcn-ls2t']}, FCN {ours['fcn']}, LS2T {ours['ls2t']}; "
        f"RandomLS2T, which trains no network, {random} (MultiROCKET-Hydra {rocket}).\n"
    )


def save(figure: Figure, path: Path) -> None:
    """Save a figure as a reproducible SVG with selectable text."""
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "seq2tens"}):
        figure.savefig(path, metadata={"Date": None})


def write(readme: Path = README, figures: Path = FIGURES) -> None:
    """Draw both figures and fill in the README."""
    averages = points([row for row in csv_rows.read(Row, ACCURACY) if row.dataset in DATASETS])
    figures.mkdir(parents=True, exist_ok=True)
    save(accuracy_chart(averages), figures / "accuracy.svg")
    save(speed_chart(ratios(json.loads(SPEED.read_text())["results"])), figures / "speed.svg")
    fill(readme, START, END, sentences(averages))


if __name__ == "__main__":
    write()
