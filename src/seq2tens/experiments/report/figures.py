"""Figures of the experiments; no information is conveyed by colour alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from seq2tens import _checks as check
from seq2tens.experiments.report.statistics import Posterior, Ranking
from seq2tens.experiments.report.style import BLUE, FAINT, INK, ORANGE, PALE, WIDTH, styled

MARKERS = "osD^vPX<>*phd8H"
TICKS = (0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97, 0.98, 0.99, 1)
# Sizes in the diagram of ranks, in inches.
ROW, SCALE_TOP, BAR = 0.23, 0.85, 0.11


@styled
def critical_difference_diagram(ranking: Ranking, labels: Mapping[str, str]) -> Figure:
    """Plot mean ranks on a scale, best at the left; a bar joins models that do not differ significantly."""
    n = len(ranking.models)
    left = (n + 1) // 2  # the number of models with their names at the left
    first_row = SCALE_TOP + 0.3 + BAR * len(ranking.groups)
    height = first_row + ROW * left + 0.15
    figure = Figure(figsize=(WIDTH, height))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    low, high = _enclosing_integers(min(ranking.ranks), max(ranking.ranks))
    names = 0.45 + 0.08 * max(len(labels[model]) for model in ranking.models)  # inches
    margin = max(0.42, names / max(WIDTH - 2 * names, 1)) * (high - low)  # room for names
    ax.set_xlim(low - margin, high + margin)
    ax.set_ylim(height, 0)
    _draw_scale(ax, low, high)
    ax.plot([low, low + ranking.critical_difference], [0.34, 0.34], color=INK, lw=1.6, marker="|", ms=7)
    ax.text(low, 0.26, f"critical difference {ranking.critical_difference:.2f}", va="bottom")
    for i, (model, rank) in enumerate(zip(ranking.models, ranking.ranks, strict=True)):
        at_left = i < left
        y = first_row + ROW * (i if at_left else n - 1 - i)
        _draw_model(ax, rank, y, low if at_left else high, labels[model], at_left)
    for i, (first, last) in enumerate(ranking.groups):
        y = SCALE_TOP + 0.14 + BAR * i
        bounds = [ranking.ranks[first] - 0.02 * (high - low), ranking.ranks[last] + 0.02 * (high - low)]
        ax.plot(bounds, [y, y], color=BLUE, lw=3.4, solid_capstyle="butt")
    return figure


def _enclosing_integers(low: float, high: float) -> tuple[int, int]:
    """The integers that enclose a range of ranks."""
    low_end = int(np.floor(low))
    return low_end, max(int(np.ceil(high)), low_end + 1)


def _draw_scale(ax: Axes, low: int, high: int) -> None:
    ax.plot([low, high], [SCALE_TOP, SCALE_TOP], color=INK, lw=1)
    for rank in np.arange(low, high + 0.5, 0.5).tolist():
        whole = rank == int(rank)
        ax.plot([rank, rank], [SCALE_TOP, SCALE_TOP - (0.08 if whole else 0.04)], color=INK, lw=1)
        if whole:
            ax.text(rank, SCALE_TOP - 0.11, f"{rank:.0f}", ha="center", va="bottom")


def _draw_model(ax: Axes, rank: float, y: float, edge: float, label: str, at_left: bool) -> None:
    ax.plot([rank, rank, edge], [SCALE_TOP, y, y], color=FAINT, lw=0.8)
    ax.plot([rank], [SCALE_TOP], color=INK, marker="o", ms=3.5)
    if at_left:
        ax.text(edge, y, f"{label}  {rank:.2f} ", ha="right", va="center", parse_math=False)
    else:
        ax.text(edge, y, f" {rank:.2f}  {label}", ha="left", va="center", parse_math=False)


@styled
def boxes(ours: Mapping[str, Sequence[float]], paper: Mapping[str, Sequence[float]]) -> Figure:
    """Plot accuracies over data sets by model: a box for ours, a hatched one for the paper's."""
    check.require(len(ours) > 0, "`ours` must hold at least one model, got none")
    names = list(ours)
    figure = Figure(figsize=(WIDTH, 0.9 + 0.42 * len(names)), layout="constrained")
    ax = figure.subplots()
    positions = np.arange(len(names), dtype=float)
    _draw_boxes(ax, [ours[name] for name in names], positions - 0.17, BLUE, "")
    shared = [i for i, name in enumerate(names) if paper.get(name)]
    _draw_boxes(ax, [paper[names[i]] for i in shared], positions[shared] + 0.19, FAINT, "////")
    ax.set_yticks(positions, names, parse_math=False)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlabel("accuracy on a data set: ours (blue, dots) and the paper's on the same ones (hatched)")
    ax.grid(axis="x")
    ax.set_axisbelow(True)
    return figure


def _draw_boxes(
    ax: Axes, values: list[Sequence[float]], positions: np.ndarray, color: str, hatch: str
) -> None:
    if not values:
        return
    parts = ax.boxplot(
        [list(numbers) for numbers in values],
        positions=positions.tolist(),
        orientation="horizontal",
        widths=0.28,
        whis=(0, 100),
        patch_artist=True,
        manage_ticks=False,
        medianprops={"color": INK, "linewidth": 1.6},
        whiskerprops={"color": color},
        capprops={"color": color},
    )
    for box in parts["boxes"]:
        box.set(facecolor="none" if hatch else f"{color}55", edgecolor=color, hatch=hatch)
    if not hatch:
        for numbers, position in zip(values, positions, strict=True):
            ax.plot(list(numbers), [position] * len(numbers), "o", color=color, ms=2.6, mew=0, alpha=0.8)


@dataclass(frozen=True)
class Point:
    """A pair of our mean accuracy and the published one."""

    model: str
    dataset: str
    ours: float
    published: float


@styled
def against_published(points: Sequence[Point], limit: float) -> Figure:
    """Plot our accuracies against the published ones, stretched near 1; the band has half-width `limit`."""
    check.require(len(points) > 0, "`points` must hold at least one, got none")
    figure = Figure(figsize=(WIDTH, 4.9), layout="constrained")
    ax = figure.subplots()
    low = min(value for point in points for value in (point.ours, point.published)) - 0.02
    line = np.linspace(low - limit, 1 + limit, 200)
    ax.fill_between(line, line - limit, line + limit, color=FAINT, alpha=0.2, lw=0)
    ax.plot(line, line, color=FAINT, lw=0.9)
    for i, model in enumerate(dict.fromkeys(point.model for point in points)):
        _draw_points(ax, [point for point in points if point.model == model], i)
    _label_outliers(ax, points, limit)
    ax.set_xscale("function", functions=(_to_log_scale, _from_log_scale))
    ax.set_yscale("function", functions=(_to_log_scale, _from_log_scale))
    ticks = [tick for tick in TICKS if tick >= low]
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set(xlim=(low, 1.0015), ylim=(low, 1.0015), aspect="equal")
    ax.set_xlabel("published accuracy")
    ax.set_ylabel("our accuracy")
    ax.grid()
    figure.legend(loc="outside right upper", fontsize=8)
    return figure


def _to_log_scale(accuracy: np.ndarray) -> np.ndarray:
    """Roughly minus the logarithm of the error, but finite for an error of 0."""
    return -np.log10(np.maximum(1.01 - accuracy, 1e-3))


def _from_log_scale(value: np.ndarray) -> np.ndarray:
    return 1.01 - 10.0**-value


def _draw_points(ax: Axes, points: Sequence[Point], number: int) -> None:
    color = (BLUE, ORANGE, INK)[number // 2 % 3]
    ax.plot(
        [point.published for point in points],
        [point.ours for point in points],
        MARKERS[number % len(MARKERS)],
        color=color,
        markerfacecolor=color if number % 2 == 0 else "none",
        ms=5,
        alpha=0.85,
        label=points[0].model,
    )


def _label_outliers(ax: Axes, points: Sequence[Point], limit: float, most: int = 6) -> None:
    for point in sorted(points, key=lambda point: -abs(point.ours - point.published))[:most]:
        if abs(point.ours - point.published) > limit:
            xy = (point.published, point.ours)
            ax.annotate(point.dataset, xy, (5, -8), textcoords="offset points", fontsize=7, parse_math=False)


@styled
def posterior_bars(posteriors: Sequence[Posterior], labels: Mapping[str, str]) -> Figure:
    """Plot probabilities of the signed-rank test: a panel for each right model, a bar for each left one."""
    check.require(len(posteriors) > 0, "`posteriors` must hold at least one, got none")
    panels = list(dict.fromkeys(posterior.right for posterior in posteriors))
    sizes = [sum(posterior.right == panel for posterior in posteriors) for panel in panels]
    figure = Figure(figsize=(WIDTH, 0.7 + 0.55 * len(panels) + 0.24 * sum(sizes)), layout="constrained")
    axes = figure.subplots(len(panels), squeeze=False, height_ratios=[size + 0.8 for size in sizes])[:, 0]
    for ax, panel in zip(axes, panels, strict=True):
        _draw_bars(ax, [posterior for posterior in posteriors if posterior.right == panel], labels)
        ax.set_title(f"{labels[panel]} against", loc="left", fontsize=10, fontweight="bold", parse_math=False)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper right", ncols=3)
    return figure


def _draw_bars(ax: Axes, posteriors: Sequence[Posterior], labels: Mapping[str, str]) -> None:
    positions = range(len(posteriors))
    probabilities = np.array([posterior.probabilities for posterior in posteriors])
    left = np.zeros(len(posteriors))
    styles = {"better": (2, BLUE, ""), "equivalent": (1, "none", ""), "worse": (0, PALE, "////")}
    for name, (column, color, hatch) in styles.items():
        width = probabilities[:, column]
        ax.barh(
            positions,
            width,
            left=left,
            color=color,
            edgecolor=INK,
            lw=0.7,
            hatch=hatch,
            label=name,
            height=0.72,
        )
        left = left + width
    for position, row in zip(positions, probabilities, strict=True):
        ax.text(1.01, position, f"{row[2]:.2f}", va="center", fontsize=8)
    ax.axvline(0.5, color=INK, lw=0.7, ls=(0, (2, 2)))
    ax.set_yticks(positions, [labels[posterior.left] for posterior in posteriors], parse_math=False)
    ax.set(xlim=(0, 1), ylim=(len(posteriors) - 0.4, -0.6))
    ax.tick_params(left=False)
    ax.spines[["left", "bottom"]].set_visible(False)


@styled
def simplex(posteriors: Sequence[Posterior], labels: Mapping[str, str]) -> Figure:
    """Plot draws of the signed-rank test in triangles: corners mean certainty, dark areas many draws."""
    check.require(len(posteriors) > 0, "`posteriors` must hold at least one, got none")
    columns = min(len(posteriors), 3)
    rows = -(-len(posteriors) // columns)
    figure = Figure(figsize=(WIDTH, 2.5 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).flat
    for ax in figure.axes:
        ax.set_axis_off()
    for ax, posterior in zip(axes, posteriors, strict=False):
        _draw_triangle(ax, posterior, labels)
    return figure


def _draw_triangle(ax: Axes, posterior: Posterior, labels: Mapping[str, str]) -> None:
    top = np.sqrt(3) / 2
    corners = np.array([[0, 0], [0.5, top], [1, 0]])  # left, equivalent, right
    shades = LinearSegmentedColormap.from_list("shades", [f"{BLUE}22", BLUE])
    points = posterior.sample @ corners
    drawn = ax.hexbin(
        *points.T, gridsize=(34, 20), extent=(0, 1, 0, top), mincnt=1, bins="log", cmap=shades, lw=0
    )
    drawn.set_rasterized(True)  # hundreds of shapes would make up most of a page
    ax.plot(*corners[[0, 1, 2, 0]].T, color=INK, lw=1)
    for middle in (corners[[0, 1]], corners[[1, 2]], corners[[0, 2]]):
        ax.plot(*np.stack([corners.mean(axis=0), middle.mean(axis=0)]).T, color=FAINT, lw=0.9)
    left, equivalent, right = posterior.probabilities
    texts = (
        f"{labels[posterior.left]}\n{left:.3f}",
        f"equivalent {equivalent:.3f}",
        f"{labels[posterior.right]}\n{right:.3f}",
    )
    for (x, y), text, above in zip(corners, texts, (False, True, False), strict=True):
        ax.text(
            x,
            y + (0.02 if above else -0.03),
            text,
            ha="center",
            va="bottom" if above else "top",
            parse_math=False,
        )
    ax.set(xlim=(-0.25, 1.25), ylim=(-0.2, 1), aspect="equal")
