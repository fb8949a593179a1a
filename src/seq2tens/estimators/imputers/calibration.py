"""Calibrated distributions of missing entries, from the quantiles of a network.

A network predicts the quantiles of an entry at a few levels. Between and beyond them, the quantile is a
piecewise linear function of the standard normal score of its level. A value that was not used in training
thus has a score, too, and the scores of many such values show the true level of each predicted quantile: this
is split-conformal prediction with the level as its nonconformity score.

Scores are in units of the scale of their sequence: each of its observed entries is hidden once, and the mean
size of their scores, relative to the usual one, shows how far the predictions are off in this sequence
(normalised, or locally adaptive, conformal prediction). So intervals stay calibrated when errors grow or
shrink after training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import ndtr, ndtri

from seq2tens.data import Sequences, times_of
from seq2tens.estimators.imputers.formats import Values
from seq2tens.models.imputation import LEVELS

NORMAL_LEVELS = ndtri(np.array(LEVELS))
# Levels at which the distribution of scores is kept.
GRID = np.linspace(0, 1, 1001)
# With fewer scores in a channel, those of all channels are used; with fewer of these, normal ones.
FEWEST_OF_CHANNEL, FEWEST = 300, 20
# Largest number of groups of sequences, coverages for which intervals are compared with groups that were left
# out, and the least width of an interval to one side.
GROUPS, COVERAGES, LEAST_WIDTH = 20, np.array([0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98]), 1e-6
# Number of turns in which the observed entries of a sequence are hidden.
TURNS = 3
# Larger scores count as this; their mean size is shrunken to the usual one, as if there were this many more.
LARGEST, PRIOR_ENTRIES = 3.0, 20
# Candidates for the correlation time, in steps.
AGES = np.geomspace(0.1, 100, 61)

Knots = Float[np.ndarray, "*entries levels"]
Scores = Float[np.ndarray, " entries"]
Entries = Bool[np.ndarray, "steps channels"]
# Predicts the quantiles of the marked entries as if they were missing; 0 for all others.
Predict = Callable[[Sequences, Entries], Knots]


def score_of(values: Float[np.ndarray, "*entries"], knots: Knots) -> Float[np.ndarray, "*entries"]:
    """Return the levels of values among the quantiles, as standard normal scores."""
    segment = (values[..., None] >= knots[..., 1:-1]).sum(-1)
    return _along(values, segment, knots, np.broadcast_to(NORMAL_LEVELS, knots.shape))


def quantile_at(scores: Float[np.ndarray, "*entries"], knots: Knots) -> Float[np.ndarray, "*entries"]:
    """Return the quantiles at levels that are given by their standard normal scores."""
    segment = (scores[..., None] >= NORMAL_LEVELS[1:-1]).sum(-1)
    return _along(scores, segment, np.broadcast_to(NORMAL_LEVELS, knots.shape), knots)


def _along(x: np.ndarray, segment: Int[np.ndarray, "*entries"], start: Knots, end: Knots) -> np.ndarray:
    """Return the value at `x` of the line that maps one segment of knots to the other."""
    (x0, x1), (y0, y1) = (
        [np.take_along_axis(knots, (segment + i)[..., None], -1)[..., 0] for i in (0, 1)]
        for knots in (start, end)
    )
    return y0 + (x - x0) / (x1 - x0) * (y1 - y0)


@dataclass(frozen=True, eq=False)
class Calibration:
    """Scores at the levels of `GRID` for each channel, and the correlation time of errors, in steps.

    Scores are in units of the scale of their sequence; `usual_size` is the mean size of the scores of
    sequences' own entries, None if all scales are 1.
    """

    table: Float[np.ndarray, "levels channels"]
    age: float
    usual_size: float | None = None

    @classmethod
    def of(
        cls,
        scores: Float[np.ndarray, " sample"],
        channels: Int[np.ndarray, " sample"],
        n_channels: int,
        sequences: Int[np.ndarray, " sample"],
        kinds: Int[np.ndarray, " sample"] | None = None,
    ) -> Calibration:
        """Calibrate with scores of entries that were not used in training, and the sequence of each.

        Entries of a sequence depend on each other, so that quantiles of few sequences say too little about
        others. Each group of sequences is therefore compared with the quantiles of all others, and these are
        stretched until the intervals contain as many entries as they should, of each of the kinds.
        """
        table = _tables(scores, channels, n_channels)
        groups = np.unique(sequences, return_inverse=True)[1] % GROUPS
        if len(scores) < FEWEST or not groups.any():
            return cls(table, 0.0)
        distances = np.empty((len(scores), len(COVERAGES)))
        for group in range(groups.max() + 1):
            left_out = groups == group
            others = cls(_tables(scores[~left_out], channels[~left_out], n_channels), 0.0)
            distances[left_out] = others._distances(scores[left_out], channels[left_out])
        kinds = np.zeros(len(scores), dtype=int) if kinds is None else kinds
        factors = np.max([_factors(distances[kinds == kind]) for kind in np.unique(kinds)], axis=0)
        stretch = np.interp(np.abs(2 * GRID - 1), COVERAGES, factors)[:, None]
        middle = table[len(GRID) // 2]
        return cls(np.maximum.accumulate(middle + stretch * (table - middle)), 0.0)

    def _distances(
        self, scores: Float[np.ndarray, " sample"], channels: Int[np.ndarray, " sample"]
    ) -> Float[np.ndarray, "sample coverages"]:
        """Return distances from the middle of the interval of each coverage, in units of its half-width."""
        middle = self.scores(0.5)[channels]
        ends = [[self.scores((1 + sign * level) / 2)[channels] for level in COVERAGES] for sign in (-1, 1)]
        low, high = (np.abs(np.stack(end, axis=1) - middle[:, None]) for end in ends)
        side = np.where((scores > middle)[:, None], high, low)
        return np.abs(scores - middle)[:, None] / np.maximum(side, LEAST_WIDTH)

    def scores(self, level: float) -> Float[np.ndarray, " channels"]:
        """Return the score at this level for each channel."""
        return np.array([np.interp(level, GRID, column) for column in self.table.T])

    def corrected(self, normal: Float[np.ndarray, "*draws channels"]) -> Float[np.ndarray, "*draws channels"]:
        """Transform standard normal scores to scores with the distribution of the sample."""
        levels = ndtr(normal)
        columns = [np.interp(levels[..., c], GRID, column) for c, column in enumerate(self.table.T)]
        return np.stack(columns, axis=-1)

    def normalized(
        self, scores: Float[np.ndarray, " sample"], channels: Int[np.ndarray, " sample"]
    ) -> Float[np.ndarray, " sample"]:
        """Transform scores of a sample to standard normal ones: the inverse of `corrected`."""
        levels = np.empty(len(scores))
        for c, column in enumerate(self.table.T):
            levels[channels == c] = np.interp(scores[channels == c], column, GRID)
        return ndtri(np.clip(levels, 1e-3, 1 - 1e-3))


def _factors(distances: Float[np.ndarray, "sample coverages"]) -> Float[np.ndarray, " coverages"]:
    """Return the factor by which the intervals of each coverage must be stretched to contain its part."""
    return np.array(
        [np.quantile(column, level) for column, level in zip(distances.T, COVERAGES, strict=True)]
    )


def _tables(
    scores: Float[np.ndarray, " sample"], channels: Int[np.ndarray, " sample"], n_channels: int
) -> Float[np.ndarray, "levels channels"]:
    """Return the quantiles of the scores of each channel, or of all channels where there are too few."""
    pooled = _table(scores, FEWEST, ndtri(np.clip(GRID, 1e-6, 1 - 1e-6)))
    columns = [_table(scores[channels == c], FEWEST_OF_CHANNEL, pooled) for c in range(n_channels)]
    return np.stack(columns, axis=1)


class Sample(NamedTuple):
    """Scores of hidden entries in units of their sequence's scale; channel, sequence and kind of each."""

    scores: Scores
    channels: Int[np.ndarray, " entries"]
    sequences: Int[np.ndarray, " entries"]
    kinds: Int[np.ndarray, " entries"]

    @classmethod
    def of(cls, predict: Predict, X: Sequences, masks: Iterable[Entries], usual: float | None) -> Sample:
        """Hide the entries of each mask, which are of one kind."""
        samples = []
        for kind, hidden in enumerate(masks):
            scores, sequence = _scores(X, predict(X, hidden), hidden)
            visible = X.with_values(np.where(hidden, np.nan, X.values))
            scores = scores / scales(predict, visible, usual)[sequence]
            samples.append((scores, np.nonzero(hidden)[1], sequence, np.full(len(scores), kind)))
        return cls(*(np.concatenate(column) for column in zip(*samples, strict=True)))


def usual_size(predict: Predict, X: Sequences) -> float | None:
    """Return the mean size of scores of observed entries; None if there are too few."""
    scores, _ = _own_scores(predict, X)
    size = _size(scores).mean() if len(scores) >= FEWEST else 0.0
    return float(size) if size > 0 else None


def scales(predict: Predict, X: Sequences, usual: float | None) -> Float[np.ndarray, " sequences"]:
    """Return the scale of each sequence: the mean size of its scores, relative to the usual size.

    It is 1 for a sequence without observed entries, and for all if no usual size is known.
    """
    if usual is None:
        return np.ones(len(X))
    scores, sequence = _own_scores(predict, X)
    total = np.bincount(sequence, _size(scores) / usual, minlength=len(X))
    return (total + PRIOR_ENTRIES) / (np.bincount(sequence, minlength=len(X)) + PRIOR_ENTRIES)


def _own_scores(predict: Predict, X: Sequences) -> tuple[Scores, Int[np.ndarray, " entries"]]:
    """Return the scores of all observed entries, hidden in turns, and the sequence of each."""
    observed = ~np.isnan(X.values)
    # Every sequence begins with the same turns, so that they do not depend on the other sequences.
    turns = np.random.default_rng(0).integers(TURNS, size=(X.lengths.max(initial=0), X.n_channels))
    turn = turns[X.positions]
    knots = np.sum([predict(X, observed & (turn == now)) for now in range(TURNS)], axis=0)
    return _scores(X, knots, observed)


def _scores(X: Sequences, knots: Knots, entries: Entries) -> tuple[Scores, Int[np.ndarray, " entries"]]:
    sequence = np.repeat(np.arange(len(X)), X.lengths)[np.nonzero(entries)[0]]
    return score_of(X.values[entries].astype(np.float64), knots[entries].astype(np.float64)), sequence


def _size(scores: Scores) -> Scores:
    return np.minimum(np.abs(scores), LARGEST)


def correlation_age(products: Float[np.ndarray, " pairs"], elapsed: Float[np.ndarray, " pairs"]) -> float:
    """Estimate the time, in steps, after which the correlation of errors has decayed to 1/e.

    It is fitted by least squares to `products` of normal scores of pairs that are `elapsed` steps apart; 0 if
    there are too few pairs, or if no correlation fits better.
    """
    if len(products) < FEWEST:
        return 0.0
    losses = [np.square(products - np.exp(-elapsed / age)).mean() for age in AGES]
    return float(AGES[int(np.argmin(losses))]) if min(losses) < np.square(products).mean() else 0.0


def pairs(X: Sequences, normal: Values) -> tuple[np.ndarray, np.ndarray]:
    """Return products of the scores of successive entries in a channel, and the time between them."""
    times, starts = times_of(X), X.starts
    products, elapsed = [], []
    for column in normal.T:
        steps = np.flatnonzero(~np.isnan(column))
        same_sequence = starts[steps[1:]] == starts[steps[:-1]]
        first, second = steps[:-1][same_sequence], steps[1:][same_sequence]
        products.append(column[first] * column[second])
        elapsed.append(times[second] - times[first])
    return np.concatenate(products), np.concatenate(elapsed)


def correlated(
    generator: np.random.Generator, n: int, times: Float[np.ndarray, " steps"], channels: int, age: float
) -> Float[np.ndarray, "draws steps channels"]:
    """Draw standard normal paths whose correlation decays exponentially with time (Ornstein–Uhlenbeck)."""
    paths = generator.standard_normal((n, len(times), channels))
    if age == 0:
        return paths
    correlations = np.exp(-np.diff(times) / age)
    for step, correlation in enumerate(correlations.tolist(), start=1):
        paths[:, step] = correlation * paths[:, step - 1] + np.sqrt(1 - correlation**2) * paths[:, step]
    return paths


def _table(
    scores: Float[np.ndarray, " sample"], fewest: int, otherwise: Float[np.ndarray, " levels"]
) -> Float[np.ndarray, " levels"]:
    """Return quantiles of n scores; level p has rank p·(n + 1), as split-conformal prediction requires."""
    return np.quantile(scores, GRID, method="weibull") if len(scores) >= fewest else otherwise
