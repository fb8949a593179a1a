"""Errors of an imputer, by channel and by gap length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from seq2tens._checks import require
from seq2tens.data import Sequences, held_out, last_observed
from seq2tens.estimators.imputers.base import Imputer
from seq2tens.estimators.imputers.interpolation import first_after
from seq2tens.estimators.seeds import RandomState, seed_of

# Lower ends of the ranges of gap lengths, in steps.
GAPS = (1, 2, 4, 8, 16, 32)
ALL = "all"


@dataclass(frozen=True, eq=False)
class ImputationReport:
    """Errors on known entries: a table with a row for each channel and gap length.

    `gap` is the number of consecutive missing steps of the channel, such as `4-7`; `all` stands for all gaps,
    and for all channels. `error` is the mean absolute error in units of the data (empty for all channels),
    `scaled_error` the same in standard deviations of the channel in training; `covered` is the fraction of
    entries in their intervals, `width` the mean width of the intervals in standard deviations.
    """

    columns: dict[str, np.ndarray]

    def __str__(self) -> str:
        """Return the table as text."""
        cells = [list(self.columns)]
        cells += [[_text(cell) for cell in row] for row in zip(*self.columns.values(), strict=True)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells
        )


def imputation_report(
    imputer: Imputer,
    X: Sequences,
    truth: Sequences | None = None,
    *,
    coverage: float = 0.9,
    channels: Sequence[str] | None = None,
    random_state: RandomState = 0,
) -> ImputationReport:
    """Measure the errors of a fitted imputer on known entries.

    Args:
        imputer: a fitted imputer.
        X: sequences.
        truth: the same sequences with more values; the entries missing in `X` are compared. Without it, a
            tenth of the observed entries of `X` is hidden; the errors are too small if the imputer was fitted
            to them.
        coverage: coverage of the intervals.
        channels: names of the channels.
        random_state: seed that selects the hidden entries.
    """
    known = X.values if truth is None else truth.values
    require(known.shape == X.values.shape, f"`truth` must have the steps of `X`, got {truth!r} for {X!r}")
    if truth is None:
        X = X.with_values(held_out(X.values, 0.1, np.random.default_rng(seed_of(random_state)))[0])
    compared = np.isnan(X.values) & ~np.isnan(known)
    require(bool(compared.any()), "`imputation_report` needs at least one entry to compare, got none")
    names = tuple(map(str, range(X.n_channels))) if channels is None else tuple(channels)
    low, high = imputer.predict_interval(X, coverage)
    scale = np.broadcast_to(imputer.scaler_.scale_, known.shape)
    entries = {
        "channel": np.nonzero(compared)[1],
        "gap": gap_lengths(X)[compared],
        "error": np.abs(imputer.transform(X).values - known)[compared],
        "scale": scale[compared],
        "covered": ((known >= low.values) & (known <= high.values))[compared],
        "width": (high.values - low.values)[compared],
    }
    return ImputationReport(_table(entries, names))


def gap_lengths(X: Sequences) -> Int[np.ndarray, "steps channels"]:
    """Return the length of the gap that each missing entry belongs to; 0 for observed entries."""
    observed = ~np.isnan(X.values)
    before, after = last_observed(observed, X.starts), first_after(observed, X.offsets)
    start = np.where(before >= 0, before + 1, X.starts[:, None])
    stop = np.where(after >= 0, after, np.repeat(X.offsets[1:], X.lengths)[:, None])
    return np.where(observed, 0, stop - start)


def _table(entries: dict[str, np.ndarray], names: tuple[str, ...]) -> dict[str, np.ndarray]:
    rows: list[tuple[Any, ...]] = []
    for channel in (None, *range(len(names))):
        of_channel = (
            np.ones(len(entries["gap"]), dtype=bool) if channel is None else entries["channel"] == channel
        )
        name = ALL if channel is None else names[channel]
        for gap, chosen in _by_gap(entries["gap"], of_channel):
            rows += [(name, gap, *_measured(entries, chosen, of_one=channel is not None))]
    header = ("channel", "gap", "entries", "error", "scaled_error", "covered", "width")
    return {title: np.array(column) for title, column in zip(header, zip(*rows, strict=True), strict=True)}


def _by_gap(
    gaps: Int[np.ndarray, " entries"], of_channel: Bool[np.ndarray, " entries"]
) -> list[tuple[str, Bool[np.ndarray, " entries"]]]:
    """Select all gaps, then those of every range that occurs."""
    groups = [(ALL, of_channel)]
    for low, high in zip(GAPS, (*GAPS[1:], None), strict=True):
        inside = of_channel & (gaps >= low) & (True if high is None else gaps < high)
        name = f"{low}+" if high is None else str(low) if high == low + 1 else f"{low}-{high - 1}"
        groups.append((name, inside))
    return [(name, chosen) for name, chosen in groups if chosen.any()]


def _measured(entries: dict[str, np.ndarray], chosen: np.ndarray, *, of_one: bool) -> tuple[float, ...]:
    error, scale, covered, width = (entries[n][chosen] for n in ("error", "scale", "covered", "width"))
    return (
        int(chosen.sum()),
        float(error.mean()) if of_one else np.nan,
        float((error / scale).mean()),
        float(covered.mean()),
        float((width / scale).mean()),
    )


def _text(cell: Any) -> str:
    if isinstance(cell, float):
        return "" if np.isnan(cell) else f"{cell:.3g}"
    return str(cell)
