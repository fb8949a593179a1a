"""The figure of an explanation: arcs between pairs of steps, single steps, variables over time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as CurvePath
from matplotlib.ticker import MaxNLocator

from seq2tens.explaining.explanation import Explanation

RAISES, LOWERS = "#b2182b", "#2166ac"
COLORS = "RdBu_r"
# More would be unreadable: further variables are merged into one row, further pairs are left out.
MOST_ROWS, MOST_ARCS = 48, 30
LONGEST_NAME = 24


class _Rows(NamedTuple):
    """Variables in order of importance."""

    names: list[str]
    parts: Float[np.ndarray, "rows time"]
    observed: Bool[np.ndarray, "rows time"]


def draw(explanation: Explanation, unit: str) -> Figure:
    """Draw the figure. Steps have equal widths, because times may be close together; ticks show the times."""
    rows = _rows(explanation)
    height = max(1.2, 0.19 * len(rows.names))
    figure = Figure(figsize=(11, 4.4 + height), layout="constrained")
    grid = figure.add_gridspec(3, 2, width_ratios=[5, 1], height_ratios=[1.6, 0.8, height])
    heat = figure.add_subplot(grid[2, 0])
    single_steps, arcs = (figure.add_subplot(grid[row, 0], sharex=heat) for row in (1, 0))
    totals = figure.add_subplot(grid[2, 1], sharey=heat)
    figure.colorbar(
        _draw_heat(heat, rows),
        ax=heat,
        location="bottom",
        extend="both",
        fraction=0.35 / height,
        pad=0.08 / height,
        aspect=60,
        label="contribution",
    )
    _draw_totals(totals, rows)
    _draw_singles(single_steps, explanation)
    _draw_arcs(arcs, explanation)
    _label_times(heat, explanation.times, unit)
    figure.suptitle(_title(explanation), parse_math=False)
    return figure


def _title(explanation: Explanation) -> str:
    change = explanation.output - explanation.baseline_output
    return (
        f"logit of class {explanation.target} against the rest: {explanation.output:.3g} = "
        f"{explanation.baseline_output:.3g} (baseline) {'-' if change < 0 else '+'} {abs(change):.3g}"
    )


def _rows(explanation: Explanation) -> _Rows:
    parts, observed = explanation.variables.T, explanation.measured.T
    order = np.argsort(-np.abs(parts).sum(axis=1), kind="stable")
    names = [_short(explanation.names[c]) for c in order]
    parts, observed = parts[order], observed[order]
    if len(names) > MOST_ROWS:
        shown = MOST_ROWS - 1
        rest = parts[shown:].sum(axis=0, keepdims=True)
        names = [*names[:shown], f"{len(names) - shown} others"]
        parts = np.concatenate([parts[:shown], rest])
        observed = np.concatenate([observed[:shown], np.ones_like(rest, dtype=bool)])
    return _Rows(names, parts, observed)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _limit(values: np.ndarray, quantile: float = 1.0) -> float:
    """Return a quantile of the absolute values, or another bound if it is 0."""
    return float(np.quantile(np.abs(values), quantile)) or float(np.abs(values).max(initial=0)) or 1.0


def _draw_heat(ax: Axes, rows: _Rows) -> ScalarMappable:
    limit = _limit(rows.parts, 0.995)  # a single extreme entry would leave the rest pale
    picture = ax.imshow(
        rows.parts,
        cmap=COLORS,
        norm=Normalize(-limit, limit),
        aspect="auto",
        interpolation="nearest",
    )
    has_gaps = ~rows.observed.all(axis=1, keepdims=True)
    row, step = np.nonzero(rows.observed & has_gaps)
    ax.scatter(step, row, s=2, color="#333333", linewidths=0)
    if len(row):
        ax.set_title("dots: measured at that time, else carried forward", fontsize=9, loc="left")
    ax.set_yticks(range(len(rows.names)), rows.names, fontsize=8, parse_math=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return picture


def _draw_totals(ax: Axes, rows: _Rows) -> None:
    sums = rows.parts.sum(axis=1)
    ax.barh(range(len(sums)), sums, color=np.where(sums < 0, LOWERS, RAISES), height=0.7)
    ax.axvline(0, color="#333333", linewidth=0.8)
    ax.set_xlabel("at all times")
    ax.tick_params(axis="y", length=0, labelleft=False)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.spines[["top", "right", "left"]].set_visible(False)


def _draw_singles(ax: Axes, explanation: Explanation) -> None:
    singles = explanation.singles
    ax.bar(range(len(singles)), singles, color=np.where(singles < 0, LOWERS, RAISES), width=0.8)
    ax.axhline(0, color="#333333", linewidth=0.8)
    ax.set_ylabel("alone")
    ax.set_title(f"steps: {singles.sum():.3g}", fontsize=9, loc="left")
    ax.tick_params(axis="x", length=0, labelbottom=False)
    ax.yaxis.set_major_locator(MaxNLocator(3))
    ax.spines[["top", "right", "bottom"]].set_visible(False)


def _draw_arcs(ax: Axes, explanation: Explanation) -> None:
    pairs = explanation.pairs
    strongest = np.argsort(-np.abs(pairs), axis=None, kind="stable")[:MOST_ARCS]
    chosen = [(int(k) // len(pairs), int(k) % len(pairs)) for k in strongest if pairs.flat[k] != 0]
    limit = _limit(pairs)
    for i, j in reversed(chosen):  # the strongest on top
        strength = abs(pairs[i, j]) / limit
        color = LOWERS if pairs[i, j] < 0 else RAISES
        arc = PathPatch(
            _arc(i, j),
            fill=False,
            edgecolor=color,
            linewidth=0.4 + 2.6 * strength,
            alpha=0.25 + 0.75 * strength,
        )
        ax.add_patch(arc)
    ax.set_ylim(0, 1.05 * max([j - i for i, j in chosen], default=1))
    shown, total = pairs.sum(where=_mask(pairs.shape, chosen)), pairs.sum()
    ax.set_title(
        f"pairs: {total:.3g}, of which {shown:.3g} in the {len(chosen)} drawn", fontsize=9, loc="left"
    )
    ax.set_ylabel("in pairs")
    ax.tick_params(left=False, labelleft=False, bottom=False, labelbottom=False)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _mask(shape: tuple[int, ...], chosen: list[tuple[int, int]]) -> np.ndarray:
    mask = np.zeros(shape, dtype=bool)
    for indices in chosen:
        mask[indices] = True
    return mask


def _arc(i: int, j: int) -> CurvePath:
    """Return an arc from step i to step j, as high as their distance."""
    height = (j - i) / 0.75  # a cubic curve reaches three quarters of the height of its handles
    corners = [(i, 0), (i, height), (j, height), (j, 0)]
    return CurvePath(corners, [CurvePath.MOVETO, *[CurvePath.CURVE4] * 3])


def _label_times(ax: Axes, times: Float[np.ndarray, " time"], unit: str) -> None:
    steps = np.arange(len(times))
    ticks = MaxNLocator(12).tick_values(times[0], times[-1]) if len(times) > 1 else times
    inside = ticks[(ticks >= times[0]) & (ticks <= times[-1])]
    ax.set_xticks(np.interp(inside, times, steps), [f"{tick:g}" for tick in inside])
    ax.set_xlim(-0.5, len(times) - 0.5)
    ax.set_xlabel(unit)
