"""The data sets of the comparison of imputers, and their hidden entries."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from seq2tens.data import Labelled, Sequences, held_out, physionet2012

Cube = np.ndarray  # (n, channels, time), NaN where nothing was observed
Steps = np.ndarray  # (steps, channels), those of all sequences
Collection = Cube | Sequences
Pattern = Literal["points", "blocks"]

STAYS, WINDOW = 1000, 25  # stays per half of `physionet`, and steps per window of BasicMotions
MANY_STAYS = 4000, 2000  # to fit and to fill, of all sets
BLOCK = 6  # size of a block in channels and in steps (for stays: hours)


class Halves(NamedTuple):
    """Sequences to fit on, and sequences to fill."""

    train: Collection
    test: Collection


class Hide(NamedTuple):
    """What to hide: a fraction of the observed entries, as points or in blocks."""

    pattern: Pattern
    fraction: float

    @classmethod
    def parse(cls, text: str) -> Hide:
        """Parse a text such as `points:0.1`."""
        pattern, _, fraction = text.partition(":")
        if pattern not in ("points", "blocks"):
            raise ValueError(f"`--hide` must be points:X or blocks:X, got {text!r}")
        return cls(pattern, float(fraction))  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"{self.fraction:.0%} {self.pattern}"


@dataclass(frozen=True)
class Protocol:
    """A data set, what is hidden in it, and its name in the published results."""

    load: Callable[[], Halves]
    hidden: tuple[Hide, ...]
    published: str = ""


def _physionet() -> Halves:
    """Stays of set a on the hourly grid."""
    grid = physionet2012.grid(physionet2012.load_set("a").stays)
    order = np.random.default_rng(0).permutation(len(grid))[: 2 * STAYS]
    cube = grid.with_nan[order].transpose(0, 2, 1)
    return Halves(cube[:STAYS], cube[STAYS:])


@cache
def _all_stays() -> tuple[Labelled, Labelled]:
    """Stays of all sets to fit and to fill."""
    stays = physionet2012.Records.concatenate([physionet2012.load_set(letter) for letter in "abc"]).stays
    fit, fill = MANY_STAYS
    order = np.random.default_rng(0).permutation(len(stays))
    return stays[order[:fit]], stays[order[fit : fit + fill]]


def _physionet_abc() -> Halves:
    """Stays of all sets on the hourly grid, with all 37 variables."""
    grids = (physionet2012.grid(part, channels=physionet2012.CHANNELS) for part in _all_stays())
    return Halves(*(grid.with_nan.transpose(0, 2, 1) for grid in grids))


def _physionet_times() -> Halves:
    """The same stays at the times of their measurements, in hours."""
    return Halves(*(_without_static(part.sequences) for part in _all_stays()))


def _without_static(X: Sequences) -> Sequences:
    return Sequences(X.values, X.offsets, X.times)


def _ett_h1(steps: int) -> Halves:
    """The first 14 months to fit and the last 5 to fill, as in TSI-Bench."""
    table = pd.read_csv(Path(os.environ["SEQ2TENS_DATA"], "imputation", "ETTh1.csv"), index_col=0)
    return Halves(windows(table[:"2017-09"].to_numpy(), steps), windows(table["2018-02":].to_numpy(), steps))


def _weather(steps: int) -> Halves:
    """The first 60 % of the steps to fit and the last 20 % to fill; -9999 is a missing value."""
    path = Path(os.environ["SEQ2TENS_DATA"], "imputation", "weather.csv.gz")
    values = pd.read_csv(path, index_col=0, na_values=[-9999], encoding="utf-8").to_numpy(np.float64)
    return Halves(
        windows(values[: round(0.6 * len(values))], steps), windows(values[round(0.8 * len(values)) :], steps)
    )


def _basic_motions() -> Halves:
    """Recordings cut into non-overlapping windows."""
    from aeon.datasets import load_basic_motions

    def cut(cube: Cube) -> Cube:
        return np.concatenate([windows(recording.T, WINDOW) for recording in cube])

    return Halves(*(cut(load_basic_motions(split=split)[0]) for split in ("train", "test")))


def windows(values: Steps, steps: int) -> Cube:
    """Non-overlapping windows of this many steps; a remainder at the end is dropped."""
    n = len(values) // steps
    return values[: n * steps].reshape(n, steps, -1).transpose(0, 2, 1)


_POINTS = tuple(Hide("points", fraction) for fraction in (0.1, 0.3, 0.5))
_ALL = (*(Hide("points", fraction) for fraction in (0.1, 0.5, 0.9)), Hide("blocks", 0.5))
PROTOCOLS: dict[str, Protocol] = {
    "physionet": Protocol(_physionet, _POINTS),
    "physionet-abc": Protocol(_physionet_abc, _ALL, "PhysioNet2012"),
    "physionet-times": Protocol(_physionet_times, _ALL),
    "ett-h1": Protocol(partial(_ett_h1, 48), _ALL, "ETT_h1"),
    "ett-h1-96": Protocol(partial(_ett_h1, 96), _ALL),
    "weather": Protocol(partial(_weather, 48), _ALL),
    "weather-96": Protocol(partial(_weather, 96), _ALL),
    "basicmotions": Protocol(_basic_motions, (*_POINTS, *_ALL[2:])),
}


def hide(X: Collection, hidden: Hide, generator: np.random.Generator) -> tuple[Collection, Steps]:
    """Hide entries of a collection; return it and the mask of hidden entries."""
    values = X.values if isinstance(X, Sequences) else X
    if hidden.pattern == "points":
        visible, mask = held_out(values, hidden.fraction, generator)
    else:
        mask = _in_cube(_blocks(X, hidden.fraction, generator), X)
        visible = np.where(mask, values.dtype.type(np.nan), values)
    return (X.with_values(visible), mask) if isinstance(X, Sequences) else (visible, by_step(mask))


def _blocks(X: Collection, fraction: float, generator: np.random.Generator) -> Steps:
    """The mask of random blocks of neighbouring channels and times that contain about this fraction of the
    observed entries; the grid of blocks has a random offset in every sequence."""
    observed = ~np.isnan(by_step(X))
    sequence, times = _clock(X)
    phase = generator.uniform(0, BLOCK, size=(2, sequence[-1] + 1))
    when = np.floor((times + phase[0, sequence]) / BLOCK).astype(np.int64)
    where = (np.arange(observed.shape[1]) + phase[1].astype(np.int64)[sequence, None]) // BLOCK
    key = (sequence * (when.max() + 1) + when)[:, None] * (where.max() + 1) + where
    names, block = np.unique(key[observed], return_inverse=True)
    order = generator.permutation(len(names))
    counts = np.bincount(block)[order]
    chosen = np.zeros(len(names), dtype=bool)
    chosen[order[counts.cumsum() - counts / 2 <= fraction * len(block)]] = True
    mask = np.zeros_like(observed)
    mask[observed] = chosen[block]
    return mask


def _clock(X: Collection) -> tuple[np.ndarray, np.ndarray]:
    """The sequence and the time of each step."""
    if isinstance(X, Sequences):
        times = X.positions if X.times is None else X.times
        return np.repeat(np.arange(len(X)), X.lengths), times
    n, _, steps = X.shape
    return np.repeat(np.arange(n), steps), np.tile(np.arange(steps), n)


def by_step(X: Collection) -> Steps:
    """All steps of a collection, concatenated."""
    return X.values if isinstance(X, Sequences) else X.transpose(0, 2, 1).reshape(-1, X.shape[1])


def _in_cube(steps: Steps, X: Collection) -> np.ndarray:
    """The inverse of `by_step`."""
    if isinstance(X, Sequences):
        return steps
    n, channels, length = X.shape
    return steps.reshape(n, length, channels).transpose(0, 2, 1)
