"""Generalized random shapelet forests (Karlsson, Papapetrou & Boström 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from sklearn.utils.parallel import delayed

from seq2tens import _checks as check
from seq2tens.experiments.baselines.base import BaselineClassifier, Labels, Probabilities, Series, lengths_of

Rows = Int[np.ndarray, " rows"]
# Larger than any distance of standardised subsequences: for series that are shorter than a shapelet.
ABSENT = 3.0
# A subsequence whose variance is less than this fraction of its mean square is constant.
CONSTANT = 1e-9


@dataclass(kw_only=True, eq=False, repr=False)
class GRSFClassifier(BaselineClassifier):
    """Forests that split by the distance to a shapelet: a subsequence of one channel of a training series.

    Each node of a tree draws random shapelets, from any series that reached it, any channel and any length,
    and keeps the one with the largest information gain at its best threshold. The distance is the minimum
    over subsequences of the series, all standardised, so that level and scale do not matter. Each tree is
    grown on a bootstrap sample.

    Args:
        n_trees: number of trees.
        n_shapelets: number of shapelets that are drawn for each node.
        shortest: length of the shortest shapelet, in steps.
        longest: length of the longest shapelet, as a fraction of the series that it is taken from.
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

    def _probabilities(self, series: Series) -> Probabilities:
        collection = Collection.of(series)
        probabilities = self._parallel(
            delayed(_route)(tree, collection, self.n_classes_) for tree in self.trees_
        )
        return np.mean(probabilities, axis=0)

    def _check(self) -> None:
        check.positive_int("n_trees", self.n_trees)
        check.positive_int("n_shapelets", self.n_shapelets)
        check.positive_int("shortest", self.shortest)
        check.require(0 < self.longest <= 1, f"`longest` must lie in (0, 1], got {self.longest}")

    def _tree(self, collection: Collection, one_hot: Probabilities, seed: int) -> Node:
        generator = np.random.default_rng(seed)
        return self._grow(collection, one_hot, generator.integers(len(one_hot), size=len(one_hot)), generator)

    def _grow(
        self, collection: Collection, one_hot: Probabilities, rows: Rows, generator: np.random.Generator
    ) -> Node:
        """Grow the subtree of a node that these rows have reached."""
        probabilities = one_hot[rows].mean(axis=0)
        if probabilities.max() == 1:
            return Node(probabilities)
        best = Split(0.0, 0.0)
        for _ in range(self.n_shapelets):
            drawn = self._draw(collection, rows, generator)
            distances = collection.distances(drawn, rows)
            split = best_split(distances, one_hot[rows])
            if split.gain > best.gain:
                best, shapelet, left = split, drawn, distances < split.threshold
        if best.gain == 0:
            return Node(probabilities)
        branches = [self._grow(collection, one_hot, rows[side], generator) for side in (left, ~left)]
        return Node(probabilities, shapelet, best.threshold, branches[0], branches[1])

    def _draw(self, collection: Collection, rows: Rows, generator: np.random.Generator) -> Shapelet:
        row = generator.choice(rows)
        length = int(collection.lengths[row])
        shortest = min(self.shortest, length)
        size = int(generator.integers(shortest, max(int(self.longest * length), shortest) + 1))
        start, channel = generator.integers(length - size + 1), int(generator.integers(collection.n_channels))
        return Shapelet(channel, _standardized(collection.values[row, channel, start : start + size]))

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return {"n_trees": 5, "n_shapelets": 4, "random_state": 0}


class Shapelet(NamedTuple):
    """A standardised subsequence of a channel."""

    channel: int
    values: Float[np.ndarray, " steps"]


class Split(NamedTuple):
    """A threshold and its information gain about the class."""

    gain: float
    threshold: float


class Node(NamedTuple):
    """A node: probabilities of the classes and, unless it is a leaf, its split and its children."""

    probabilities: Float[np.ndarray, " classes"]
    shapelet: Shapelet | None = None
    threshold: float = 0.0
    left: Any = None
    right: Any = None


class Collection(NamedTuple):
    """Zero-padded series, with cumulative sums of their values and squares."""

    values: Float[np.ndarray, "series channels time"]
    sums: Float[np.ndarray, "series channels steps"]
    squares: Float[np.ndarray, "series channels steps"]
    lengths: Int[np.ndarray, " series"]

    @classmethod
    def of(cls, series: Series) -> Collection:
        """Create a collection from series of any lengths."""
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
        """The number of channels."""
        return self.values.shape[1]

    def distances(self, shapelet: Shapelet, rows: Rows) -> Float[np.ndarray, " rows"]:
        """The root mean squared distance from a shapelet to the nearest subsequence of each series."""
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
        # A constant subsequence is zero after standardisation.
        products = np.where(varies, windows @ shapelet.values / size, 0) / np.sqrt(
            np.where(varies, variance, 1)
        )
        squares = np.maximum(varies + np.mean(shapelet.values**2) - 2 * products, 0)
        inside = np.arange(squares.shape[1]) <= (self.lengths[rows] - size)[:, None]
        return np.sqrt(np.where(inside, squares, ABSENT**2).min(axis=1))


def _standardized(values: Float[np.ndarray, " steps"]) -> Float[np.ndarray, " steps"]:
    deviation = values - values.mean()
    variance = np.mean(deviation**2)
    constant = variance <= CONSTANT * (np.mean(values**2) + CONSTANT)
    return np.zeros_like(values) if constant else deviation / np.sqrt(variance)


def best_split(distances: Float[np.ndarray, " rows"], one_hot: Probabilities) -> Split:
    """The threshold with the largest gain; a gain of 0 if all distances are equal."""
    order = np.argsort(distances)
    ordered, counts = distances[order], np.cumsum(one_hot[order], axis=0)
    left, total = counts[:-1], counts[-1]
    conditional = _entropies(left) + _entropies(total - left)
    gains = (_entropies(total[None]) - conditional) / len(distances)
    gains[ordered[1:] - ordered[:-1] <= 1e-9] = 0
    if len(gains) == 0 or gains.max() <= 1e-12:
        return Split(0.0, 0.0)
    best = int(gains.argmax())
    return Split(float(gains[best]), float(ordered[best : best + 2].mean()))


def _entropies(counts: Float[np.ndarray, "sets classes"]) -> Float[np.ndarray, " sets"]:
    """The entropy of each set, given its counts of the classes, times the size of the set."""
    totals = counts.sum(axis=1)
    logarithms = np.log(np.maximum(counts, 1))
    return totals * np.log(np.maximum(totals, 1)) - (counts * logarithms).sum(axis=1)


def _route(tree: Node, collection: Collection, n_classes: int) -> Probabilities:
    """The class probabilities in the leaves that the series reach."""
    probabilities = np.empty((len(collection.lengths), n_classes))
    pending = [(tree, np.arange(len(collection.lengths)))]
    while pending:
        node, rows = pending.pop()
        if len(rows) == 0:
            continue
        if node.shapelet is None:
            probabilities[rows] = node.probabilities
            continue
        left = collection.distances(node.shapelet, rows) < node.threshold
        pending += [(node.left, rows[left]), (node.right, rows[~left])]
    return probabilities
