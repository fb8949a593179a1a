"""Generalized random shapelet forests (Karlsson, Papapetrou & Boström 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from sklearn.utils.parallel import delayed

from seq2tens import _checks as check
from seq2tens.experiments.baselines.base import BaselineClassifier, Chances, Labels, Series, lengths_of

Rows = Int[np.ndarray, " rows"]
# Farther than any two standardised stretches are from each other: a series that is too short has no stretch.
ABSENT = 3.0
# A stretch whose variance is less than this part of its mean square is constant.
CONSTANT = 1e-9


@dataclass(kw_only=True, eq=False, repr=False)
class GRSFClassifier(BaselineClassifier):
    """Trees ask how near a series comes to a shapelet: a stretch of one channel of some training series.

    Each node of a tree draws shapelets at random, of any series that reached it, any channel and any length,
    and keeps the one that, with the best threshold for the distance, tells most about the class. The distance
    is that of the nearest stretch of the series, both standardised: where a series lies, and how much it
    varies, is not seen. Each tree is grown on a bootstrap sample.

    Args:
        n_trees: trees.
        n_shapelets: shapelets that are drawn for each node.
        shortest: length of the shortest shapelet, in steps.
        longest: length of the longest, as a part of the series that it is taken from.
        scaling: as in `BaselineClassifier`, with `n_jobs` and `random_state`.
    """

    n_trees: int = 100
    n_shapelets: int = 50
    shortest: int = 3
    longest: float = 1.0

    _tags: ClassVar[dict[str, Any]] = {"algorithm_type": "shapelet"}

    def _learn(self, series: Series, labels: Labels, seed: int) -> None:
        self._check()
        collection, one_hot = Collection.of(series), self._one_hot(labels)
        seeds = np.random.default_rng(seed).integers(2**31, size=self.n_trees)
        self.trees_ = self._parallel(delayed(self._tree)(collection, one_hot, int(s)) for s in seeds)

    def _chances(self, series: Series) -> Chances:
        collection = Collection.of(series)
        chances = self._parallel(delayed(_route)(tree, collection, self.n_classes_) for tree in self.trees_)
        return np.mean(chances, axis=0)

    def _check(self) -> None:
        check.positive_int("n_trees", self.n_trees)
        check.positive_int("n_shapelets", self.n_shapelets)
        check.positive_int("shortest", self.shortest)
        check.require(0 < self.longest <= 1, f"`longest` must lie in (0, 1], got {self.longest}")

    def _tree(self, collection: Collection, one_hot: Chances, seed: int) -> Node:
        generator = np.random.default_rng(seed)
        return self._grow(collection, one_hot, generator.integers(len(one_hot), size=len(one_hot)), generator)

    def _grow(
        self, collection: Collection, one_hot: Chances, rows: Rows, generator: np.random.Generator
    ) -> Node:
        """The tree below a node that these rows have reached."""
        chances = one_hot[rows].mean(axis=0)
        if chances.max() == 1:
            return Node(chances)
        best = Split(0.0, 0.0)
        for _ in range(self.n_shapelets):
            drawn = self._draw(collection, rows, generator)
            distances = collection.distances(drawn, rows)
            split = best_split(distances, one_hot[rows])
            if split.gain > best.gain:
                best, shapelet, near = split, drawn, distances < split.threshold
        if best.gain == 0:
            return Node(chances)
        branches = [self._grow(collection, one_hot, rows[side], generator) for side in (near, ~near)]
        return Node(chances, shapelet, best.threshold, branches[0], branches[1])

    def _draw(self, collection: Collection, rows: Rows, generator: np.random.Generator) -> Shapelet:
        row = generator.choice(rows)
        length = int(collection.lengths[row])
        shortest = min(self.shortest, length)
        size = int(generator.integers(shortest, max(int(self.longest * length), shortest) + 1))
        start, channel = generator.integers(length - size + 1), int(generator.integers(collection.n_channels))
        return Shapelet(channel, _standardised(collection.values[row, channel, start : start + size]))

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return {"n_trees": 5, "n_shapelets": 4, "random_state": 0}


class Shapelet(NamedTuple):
    """A standardised stretch of a channel."""

    channel: int
    values: Float[np.ndarray, " steps"]


class Split(NamedTuple):
    """A threshold, and the information about the class that is gained by it."""

    gain: float
    threshold: float


class Node(NamedTuple):
    """Chances of the classes and, unless it is a leaf, what is asked and where to go on."""

    chances: Float[np.ndarray, " classes"]
    shapelet: Shapelet | None = None
    threshold: float = 0.0
    near: Any = None
    far: Any = None


class Collection(NamedTuple):
    """Series with zeros at their ends, and running sums of their values and squares."""

    values: Float[np.ndarray, "series channels time"]
    sums: Float[np.ndarray, "series channels steps"]
    squares: Float[np.ndarray, "series channels steps"]
    lengths: Int[np.ndarray, " series"]

    @classmethod
    def of(cls, series: Series) -> Collection:
        """Of series of any lengths."""
        lengths = lengths_of(series)
        values = np.zeros((len(series), series[0].shape[1], int(lengths.max())))
        for row, sequence in zip(values, series, strict=True):
            row[:, : len(sequence)] = sequence.T
        sums, squares = (
            np.pad(np.cumsum(part, axis=2), ((0, 0), (0, 0), (1, 0))) for part in (values, values**2)
        )
        return cls(values, sums, squares, lengths)

    @property
    def n_channels(self) -> int:
        """Channels of each series."""
        return self.values.shape[1]

    def distances(self, shapelet: Shapelet, rows: Rows) -> Float[np.ndarray, " rows"]:
        """From a shapelet to the nearest stretch of each series: the root of a mean square."""
        channel, size = shapelet.channel, len(shapelet.values)
        if size > self.values.shape[2]:
            return np.full(len(rows), ABSENT)
        windows = np.lib.stride_tricks.sliding_window_view(self.values[rows, channel], size, axis=1)
        mean, square = (
            (part[rows, channel, size:] - part[rows, channel, :-size]) / size
            for part in (self.sums, self.squares)
        )
        variance = square - mean**2
        varies = variance > CONSTANT * (square + CONSTANT)
        # A constant stretch is zero when it is standardised.
        products = np.where(varies, windows @ shapelet.values / size, 0) / np.sqrt(
            np.where(varies, variance, 1)
        )
        found = np.maximum(varies + np.mean(shapelet.values**2) - 2 * products, 0)
        inside = np.arange(found.shape[1]) <= (self.lengths[rows] - size)[:, None]
        return np.sqrt(np.where(inside, found, ABSENT**2).min(axis=1))


def _standardised(values: Float[np.ndarray, " steps"]) -> Float[np.ndarray, " steps"]:
    deviation = values - values.mean()
    variance = np.mean(deviation**2)
    constant = variance <= CONSTANT * (np.mean(values**2) + CONSTANT)
    return np.zeros_like(values) if constant else deviation / np.sqrt(variance)


def best_split(distances: Float[np.ndarray, " rows"], one_hot: Chances) -> Split:
    """The threshold between two distances with the largest gain; a gain of 0 where all are equal."""
    order = np.argsort(distances)
    ordered, counts = distances[order], np.cumsum(one_hot[order], axis=0)
    near, total = counts[:-1], counts[-1]
    conditional = _entropies(near) + _entropies(total - near)
    gains = (_entropies(total[None]) - conditional) / len(distances)
    gains[ordered[1:] - ordered[:-1] <= 1e-9] = 0
    if len(gains) == 0 or gains.max() <= 1e-12:
        return Split(0.0, 0.0)
    best = int(gains.argmax())
    return Split(float(gains[best]), float(ordered[best : best + 2].mean()))


def _entropies(counts: Float[np.ndarray, "sets classes"]) -> Float[np.ndarray, " sets"]:
    """Of sets with so many members of each class, times the number of members."""
    totals = counts.sum(axis=1)
    logarithms = np.log(np.maximum(counts, 1))
    return totals * np.log(np.maximum(totals, 1)) - (counts * logarithms).sum(axis=1)


def _route(tree: Node, collection: Collection, n_classes: int) -> Chances:
    """The chances in the leaves that series end in."""
    chances = np.empty((len(collection.lengths), n_classes))
    open_ends = [(tree, np.arange(len(collection.lengths)))]
    while open_ends:
        node, rows = open_ends.pop()
        if len(rows) == 0:
            continue
        if node.shapelet is None:
            chances[rows] = node.chances
            continue
        near = collection.distances(node.shapelet, rows) < node.threshold
        open_ends += [(node.near, rows[near]), (node.far, rows[~near])]
    return chances
