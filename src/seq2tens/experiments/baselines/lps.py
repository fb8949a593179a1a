"""Learned pattern similarity (Baydogan & Runger 2016)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from sklearn.metrics import pairwise_distances, pairwise_distances_argmin
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.parallel import delayed

from seq2tens import _checks as check
from seq2tens.experiments.baselines.base import (
    BaselineClassifier,
    Labels,
    Probabilities,
    Series,
    balanced_sample,
    check_grid,
    differences,
    lengths_of,
)
from seq2tens.experiments.baselines.leaves import bag

# The range from which the length of segments is drawn, as a fraction of the series.
SHORTEST, LONGEST = 0.05, 0.95
# The number of segments among which a tree finds its splits; each split tries one of them.
SEGMENTS = 64
SMALLEST_LEAF = 5
# The number of trees in a representation that only serves to choose a setting.
TRIAL_TREES = 25


class Setting(NamedTuple):
    """A setting for leave-one-out validation."""

    share: float | None
    depth: int


@dataclass(kw_only=True, eq=False, repr=False)
class LPSClassifier(BaselineClassifier):
    """A nearest-neighbour classifier on patterns that relate segments of a series.

    A regression tree predicts one segment of a series, step by step, from other segments, each of any channel
    or of its differences. The positions of the segments are random; relative to the length, they are the same
    for every series. The leaves of the tree are patterns. The distance of two series is the difference of
    their numbers of steps in each leaf, summed over all leaves and trees. A series gets the class of the
    nearest training series.

    Args:
        n_trees: number of regression trees.
        shares: candidates for the length of segments, as a fraction of the series; None draws one per tree.
        depths: candidates for the depth of the trees.
        sample: maximum number of training series for choosing a setting.
        scaling: as in `BaselineClassifier`, with `n_jobs` and `random_state`.

    The setting is chosen by leave-one-out validation with fewer trees; `setting_` is the chosen one.
    """

    n_trees: int = 200
    shares: Sequence[float | None] = (None, 0.25, 0.5, 0.75)
    depths: Sequence[int] = (6, 4, 8)
    sample: int = 500

    _tags: ClassVar[dict[str, Any]] = {"algorithm_type": "distance"}

    def _learn(self, series: Series, labels: Labels, seed: int) -> None:
        self._check()
        generator = np.random.default_rng(seed)
        rows = balanced_sample(labels, self.sample, seed)
        self.setting_ = self._choose(Channels.of([series[i] for i in rows]), labels[rows], generator)
        channels = Channels.of(series)
        self.trees_ = self._grow(channels, self.setting_, self.n_trees, generator)
        self.patterns_, self.labels_ = self._patterns(self.trees_, channels), labels

    def _probabilities(self, series: Series) -> Probabilities:
        patterns = self._patterns(self.trees_, Channels.of(series))
        nearest = pairwise_distances_argmin(patterns, self.patterns_, metric="manhattan")
        return self._one_hot(self.labels_[nearest])

    def _check(self) -> None:
        check.positive_int("n_trees", self.n_trees)
        check.positive_int("sample", self.sample)
        check_grid("depths", self.depths)
        known = [share for share in self.shares if share is not None]
        check.require(
            len(self.shares) > 0 and all(0 < share <= 1 for share in known),
            f"`shares` must hold at least one value, each None or in (0, 1], got {self.shares!r}",
        )

    def _choose(self, channels: Channels, labels: Labels, generator: np.random.Generator) -> Setting:
        settings = [Setting(*pair) for pair in itertools.product(self.shares, self.depths)]
        if len(settings) == 1:
            return settings[0]
        n_trees = min(TRIAL_TREES, self.n_trees)
        accuracies = {}
        for setting in settings:
            trees = self._grow(channels, setting, n_trees, generator)
            accuracies[setting] = leave_one_out(self._patterns(trees, channels), labels)
        return max(accuracies, key=accuracies.__getitem__)

    def _grow(
        self, channels: Channels, setting: Setting, n_trees: int, generator: np.random.Generator
    ) -> list[PatternTree]:
        seeds = generator.integers(2**31, size=n_trees)
        return self._parallel(delayed(PatternTree.grow)(channels, setting, int(seed)) for seed in seeds)

    def _patterns(self, trees: list[PatternTree], channels: Channels) -> Float[np.ndarray, "series leaves"]:
        return np.concatenate(self._parallel(delayed(tree.patterns)(channels) for tree in trees), axis=1)

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return {"n_trees": 4, "shares": (None,), "depths": (3,), "random_state": 0}


class Channels(NamedTuple):
    """All series concatenated, with their differences as further channels."""

    values: Float[np.ndarray, "steps channels"]
    lengths: Int[np.ndarray, " series"]

    @classmethod
    def of(cls, series: Series) -> Channels:
        """Concatenate several series."""
        rows = np.concatenate([np.hstack([x, differences(x)]) for x in series]).astype(np.float32)
        return cls(rows, lengths_of(series))


@dataclass(frozen=True)
class PatternTree:
    """A regression tree with the positions of its segments; it predicts the first one from the others."""

    share: float
    positions: Float[np.ndarray, " segments"]
    channels: Int[np.ndarray, " segments"]
    tree: DecisionTreeRegressor

    @classmethod
    def grow(cls, channels: Channels, setting: Setting, seed: int) -> PatternTree:
        """Grow a tree with random segments."""
        generator = np.random.default_rng(seed)
        share = generator.uniform(SHORTEST, LONGEST) if setting.share is None else setting.share
        positions = generator.uniform(size=1 + SEGMENTS)
        chosen = generator.integers(channels.values.shape[1], size=1 + SEGMENTS)
        table, _ = segment_table(channels, share, positions, chosen)
        tree = DecisionTreeRegressor(
            max_depth=setting.depth, min_samples_leaf=SMALLEST_LEAF, max_features=1, random_state=seed
        )
        return cls(share, positions, chosen, tree.fit(table[:, 1:], table[:, 0]))

    def patterns(self, channels: Channels) -> Float[np.ndarray, "series leaves"]:
        """The number of steps of each series in each leaf, as a fraction of its length."""
        table, sizes = segment_table(channels, self.share, self.positions, self.channels)
        return bag(self.tree, table[:, 1:], sizes) * (sizes / channels.lengths).astype(np.float32)[:, None]


def segment_table(
    channels: Channels, share: float, positions: np.ndarray, chosen: np.ndarray
) -> tuple[Float[np.ndarray, "rows segments"], Int[np.ndarray, " series"]]:
    """A table with segments as columns and the steps of all series as rows, and the rows of each series.

    Place 0 is a segment at the beginning of a series, place 1 one at its end.
    """
    lengths = channels.lengths
    sizes = np.maximum(np.round(share * lengths).astype(int), 1)
    starts = np.round(positions * (lengths - sizes)[:, None]).astype(int)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    first = np.cumsum(lengths) - lengths
    steps = starts[owner] + (first[owner] + within)[:, None]
    return channels.values[steps, chosen], sizes


def leave_one_out(patterns: Float[np.ndarray, "series leaves"], labels: Labels) -> float:
    """The fraction of series whose nearest other series has the same label."""
    distances = pairwise_distances(patterns, metric="manhattan")
    np.fill_diagonal(distances, np.inf)
    return float((labels[distances.argmin(axis=1)] == labels).mean())
