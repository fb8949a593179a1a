"""Plots, as matplotlib figures that need no display and do not use pyplot."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from seq2tens import _checks as check
from seq2tens._moved import moved_argument
from seq2tens._storage import write_atomically

# With more classes than these, a confusion matrix has no text in its cells, or no grid lines.
TEXT_CLASSES, GRID_CLASSES = 20, 40
LONGEST_LABEL = 18
# Most channels in a plot of contributions; those with smaller contributions are left out.
MOST_BARS = 40
# Most channels in a plot of a filled sequence.
MOST_PANELS = 8
COLORS = {"train": "#3b6fb6", "validation": "#d1652b"}
SUFFIXES = (".png", ".svg", ".pdf")


def learning_curves(history: Sequence[Mapping[str, float]]) -> Figure:
    """Plot losses, metrics and learning rate; `history` is that of a fit, with one row per epoch."""
    check.require(len(history) > 0, "`history` must hold at least one epoch, got none")
    measured = [name for name in history[0] if name not in ("epoch", "seconds", "rate")]
    losses = [name for name in measured if name.endswith("_loss")]
    others = [name for name in measured if name not in losses]
    panels = [("loss", losses), *((_words(name), [name]) for name in others)]
    figure = Figure(figsize=(7, 3 + 1.9 * len(panels)), layout="constrained")
    ratios = [3.0] + [2.0] * len(others) + [1.0]
    axes = figure.subplots(len(panels) + 1, sharex=True, squeeze=False, height_ratios=ratios)[:, 0]
    for ax, (title, names) in zip(axes, panels, strict=False):
        _curves(ax, history, title, names)
    _curves(axes[-1], history, "learning rate", ["rate"])
    axes[-1].set_xlabel("epoch")
    axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
    return figure


def confusion_matrix(
    y_true: Shaped[np.ndarray, " sequences"] | Sequence[Any],
    y_pred: Shaped[np.ndarray, " sequences"] | Sequence[Any],
    classes: Shaped[np.ndarray, " classes"] | Sequence[Any] | None = None,
) -> Figure:
    """Plot how often each class (row) was predicted as each (column): counts as text, row shares as colour.

    `classes` gives the rows and columns in order, by default all classes that occur, sorted.
    """
    truth, predicted = _listed(y_true), _listed(y_pred)
    classes = sorted({*truth, *predicted}) if classes is None else _listed(classes)
    counts = _counts(truth, predicted, classes)
    n = len(counts)
    side = float(np.clip(2.6 + 0.42 * n, 4.2, 12))
    figure = Figure(figsize=(side + 0.8, side), layout="constrained")
    ax = figure.subplots()
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    picture = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
    figure.colorbar(picture, ax=ax, label="share of the true class", fraction=0.046, pad=0.03)
    _label_classes(ax, [str(name) for name in classes])
    if n <= TEXT_CLASSES:
        _write_counts(ax, counts, shares)
    right, total = int(np.trace(counts)), int(counts.sum())
    ax.set_title(f"{right} of {total} right ({right / max(total, 1):.1%})")
    return figure


def predictions(
    y_true: Float[np.ndarray, " sequences"] | Sequence[float],
    y_pred: Float[np.ndarray, " sequences"] | Sequence[float],
) -> Figure:
    """Plot predicted numbers against true ones, with a dot for each sequence and the line of equality."""
    truth, predicted = (np.asarray(values, dtype=np.float64) for values in (y_true, y_pred))
    check.require(
        truth.ndim == 1 and truth.shape == predicted.shape and len(truth) > 0,
        "`y_true` and `y_pred` must be two lists of numbers of the same length, "
        f"got {truth.shape} and {predicted.shape}",
    )
    figure = Figure(figsize=(5.5, 5.5), layout="constrained")
    ax = figure.subplots()
    bounds = [min(truth.min(), predicted.min()), max(truth.max(), predicted.max())]
    ax.plot(bounds, bounds, color="#999999", linewidth=1)
    ax.scatter(truth, predicted, s=14, alpha=0.6, color=COLORS["train"])
    ax.set_xlabel("true")
    ax.set_ylabel("predicted")
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def model_scores(scores: Mapping[str, Sequence[float]], measure: str) -> Figure:
    """Plot the scores of models: a dot for each fold, a line at the mean, the first model on top."""
    check.require(len(scores) > 0, "`scores` must hold at least one model, got none")
    figure = Figure(figsize=(6.5, 1.2 + 0.5 * len(scores)), layout="constrained")
    ax = figure.subplots()
    for row, values in enumerate(scores.values()):
        ax.scatter(values, [row] * len(values), s=22, alpha=0.6, color=COLORS["train"])
        ax.plot([float(np.mean(values))] * 2, [row - 0.3, row + 0.3], color=COLORS["validation"])
    ax.set_yticks(range(len(scores)), list(scores), parse_math=False)
    ax.invert_yaxis()
    ax.set_xlabel(measure)
    ax.grid(axis="x", alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def contributions(
    channels: Sequence[str], values: Float[np.ndarray, "channels levels"], title: str
) -> Figure:
    """Plot a bar for each channel, the largest on top, stacked by level in shades."""
    check.require(len(channels) == len(values), f"`values` must have {len(channels)} rows, got {len(values)}")
    order = np.argsort(np.abs(values.sum(axis=1)), kind="stable")[-MOST_BARS:]
    figure = Figure(figsize=(7, 1.6 + 0.28 * len(order)), layout="constrained")
    ax = figure.subplots()
    shades = np.linspace(0.4, 1, values.shape[1])[::-1]
    for sign in (1, -1):
        # positive and negative parts are stacked separately from 0
        signed = np.maximum(sign * values[order], 0)
        starts = np.cumsum(signed, axis=1) - signed
        for level, shade in enumerate(shades):
            color = (*to_rgb(COLORS["validation" if sign > 0 else "train"]), shade)
            label = f"level {level + 1}" if sign > 0 else None
            ax.barh(
                range(len(order)),
                sign * signed[:, level],
                left=sign * starts[:, level],
                color=color,
                label=label,
            )
    ax.plot(values[order].sum(axis=1), range(len(order)), "|", color="#333333", markersize=9, label="sum")
    ax.set_yticks(range(len(order)), [channels[i] for i in order], parse_math=False)
    ax.axvline(0, color="#333333", linewidth=0.8)
    ax.legend(frameon=False, fontsize=8)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.set_title(title, fontsize=10, loc="left", parse_math=False)
    return figure


@moved_argument("given", "observed")
def imputation(
    observed: Float[np.ndarray, "steps channels"],
    filled: Float[np.ndarray, "steps channels"],
    interval: tuple[np.ndarray, np.ndarray] | None = None,
    *,
    times: Float[np.ndarray, " steps"] | None = None,
    channels: Sequence[str] | None = None,
    title: str = "",
) -> Figure:
    """Plot a filled sequence, with a panel for each channel.

    Observed values are dots, filled ones circles on a line, and their intervals a band; `observed` is NaN
    where values were missing. If there are many channels, those with the most missing values are drawn.
    """
    observed, filled = np.asarray(observed), np.asarray(filled)
    check.require(
        observed.ndim == 2 and observed.shape == filled.shape and observed.size > 0,
        "`observed` and `filled` must have the same shape, (steps, channels), "
        f"got {observed.shape} and {filled.shape}",
    )
    moments = np.arange(len(observed)) if times is None else np.asarray(times)
    names = [f"channel {i}" for i in range(observed.shape[1])] if channels is None else list(channels)
    missing = np.isnan(observed)
    # a channel without any value has no gaps between values to show
    order = np.argsort(-np.where(missing.all(axis=0), 0, missing.sum(axis=0)), kind="stable")
    chosen = sorted(order[:MOST_PANELS].tolist())
    figure = Figure(figsize=(8, 0.9 + 1.5 * len(chosen)), layout="constrained")
    axes = figure.subplots(len(chosen), sharex=True, squeeze=False)[:, 0]
    for ax, channel in zip(axes, chosen, strict=True):
        bounds = None if interval is None else np.stack(interval)[..., channel]
        _filled_channel(ax, moments, observed[:, channel], filled[:, channel], bounds)
        ax.set_ylabel(names[channel], parse_math=False)
    axes[0].legend(frameon=False, fontsize=8, ncols=2)
    axes[0].set_title(title, fontsize=10, loc="left", parse_math=False)
    axes[-1].set_xlabel("step" if times is None else "time")
    return figure


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure as PNG, SVG or PDF, according to the suffix, atomically."""
    write_atomically(Path(path), encoded(figure, Path(path)))


def encoded(figure: Figure, path: Path) -> bytes:
    """Return the content of a picture file of this name."""
    content = io.BytesIO()
    figure.savefig(content, format=picture_suffix(path)[1:], dpi=150)
    return content.getvalue()


def picture_suffix(path: Path) -> str:
    """Return the suffix of a picture file, in lower case."""
    suffix = path.suffix.lower()
    check.require(
        suffix in SUFFIXES, f"a picture file must end with one of {', '.join(SUFFIXES)}, got {str(path)!r}"
    )
    return suffix


def _words(name: str) -> str:
    return name.replace("_", " ")


def _curves(ax: Axes, history: Sequence[Mapping[str, float]], title: str, names: list[str]) -> None:
    epochs = [row["epoch"] for row in history]
    values = np.array([[row[name] for name in names] for row in history])
    for name, curve in zip(names, values.T, strict=True):
        color = COLORS["validation" if name.startswith("validation") else "train"]
        # A line of a single point would be invisible.
        ax.plot(epochs, curve, color=color, label=_words(name), marker="o" if len(epochs) == 1 else None)
    if title == "loss" and values.min() > 0 and values.max() > 20 * values.min():
        ax.set_yscale("log")
    if len(names) > 1:
        ax.legend(frameon=False)
    ax.set_ylabel(title)
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)


def _filled_channel(
    ax: Axes, moments: np.ndarray, observed: np.ndarray, filled: np.ndarray, bounds: np.ndarray | None
) -> None:
    gaps = np.isnan(observed)
    ax.plot(moments, filled, color="#999999", linewidth=0.8)
    if bounds is not None:
        ax.fill_between(moments, bounds[0], bounds[1], color=COLORS["validation"], alpha=0.2, linewidth=0)
    ax.plot(moments[~gaps], observed[~gaps], ".", color=COLORS["train"], label="observed")
    ax.plot(moments[gaps], filled[gaps], "o", label="filled", color=COLORS["validation"], fillstyle="none")
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)


def _listed(values: np.ndarray | Sequence[Any]) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _counts(y_true: list[Any], y_pred: list[Any], classes: list[Any]) -> Int[np.ndarray, "true pred"]:
    check.require(len(classes) > 0, "`classes` must name at least one class, got none")
    check.require(
        len(y_true) == len(y_pred),
        f"`y_true` and `y_pred` must have the same length, got {len(y_true)} and {len(y_pred)}",
    )
    numbers = {name: i for i, name in enumerate(classes)}
    for name, values in (("y_true", y_true), ("y_pred", y_pred)):
        unknown = [value for value in values if value not in numbers]
        check.require(not unknown, f"`{name}` must only hold `classes`, got {unknown[:1]}")
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    rows, columns = ([numbers[value] for value in values] for values in (y_true, y_pred))
    np.add.at(counts, (rows, columns), 1)
    return counts


def _label_classes(ax: Axes, names: list[str]) -> None:
    n = len(names)
    short = [name if len(name) <= LONGEST_LABEL else name[: LONGEST_LABEL - 1] + "…" for name in names]
    size = float(np.clip(420 / n, 4, 10))
    upright = n > GRID_CLASSES or max(map(len, short)) > 3
    # `parse_math=False`: a dollar sign in a label is a plain dollar sign.
    ax.set_xticks(range(n), short, fontsize=size, rotation=90 if upright else 0, parse_math=False)
    ax.set_yticks(range(n), short, fontsize=size, parse_math=False)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    if n <= GRID_CLASSES:
        ax.set_xticks(np.arange(n + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(n + 1) - 0.5, minor=True)
        ax.grid(which="minor", color="white", linewidth=1)
        ax.tick_params(which="minor", length=0)
    ax.spines[:].set_visible(False)


def _write_counts(ax: Axes, counts: np.ndarray, shares: np.ndarray) -> None:
    for (row, column), count in np.ndenumerate(counts):
        if count:
            color = "white" if shares[row, column] > 0.5 else "#333333"
            ax.text(column, row, str(count), ha="center", va="center", color=color, fontsize=9)
