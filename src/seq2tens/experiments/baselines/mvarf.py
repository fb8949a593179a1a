"""Autoregressive forests for multivariate time series (Tuncel & Baydogan 2018)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.parallel import delayed

from seq2tens import _checks as check
from seq2tens.experiments.baselines.base import (
    BaselineClassifier,
    Chances,
    Labels,
    Series,
    check_grid,
    differences,
    lengths_of,
)
from seq2tens.experiments.baselines.leaves import series_forest

# Part of a class on which a tree is grown. Trees of larger parts have seen most series that they represent.
PART = 0.3
# Added to mean squared errors, of values of the order of 1, whose logarithm is taken.
FLOOR = 1e-8


class Setting(NamedTuple):
    """What out-of-bag errors choose: the longest lag, and leaves of each tree."""

    order: int
    n_leaves: int


@dataclass(kw_only=True, eq=False, repr=False)
class MVARFClassifier(BaselineClassifier):
    """Regression trees predict series from their past, a forest classifies series by the errors they make.

    Each tree is grown on some series of one class, drawn at random, and predicts the change of all channels
    from a number of steps before, also drawn at random. A series is represented by the errors of all trees on
    each of its channels: those of its own class know how it goes on. It has these errors as they are,
    and their logarithms less the series' mean of them, for series that are hard to predict for all trees.

    Args:
        n_trees: regression trees of each class.
        orders: longest lags to choose from; a tree looks back at most so many steps.
        n_leaves: leaves of the trees to choose from.
        n_trees_series: size of the forest that classifies.
        scaling: as in `BaselineClassifier`, with `n_jobs` and `random_state`.

    Choices are made by the out-of-bag error of that forest; `setting_` says what was chosen.
    """

    n_trees: int = 20
    orders: Sequence[int] = (5, 2, 10)
    n_leaves: Sequence[int] = (50, 100)
    n_trees_series: int = 200

    _tags: ClassVar[dict[str, Any]] = {"algorithm_type": "dictionary"}

    def _learn(self, series: Series, labels: Labels, seed: int) -> None:
        self._check()
        members = [
            np.flatnonzero(labels == label) for label in range(self.n_classes_) for _ in range(self.n_trees)
        ]
        seeds = np.random.default_rng(seed).integers(2**31, size=len(members))
        best = -1.0
        for order, n_leaves in itertools.product(self.orders, self.n_leaves):
            past = Past.of(series, order)
            trees = self._parallel(
                delayed(RegressionTree.grow)(past, own, n_leaves, int(s))
                for own, s in zip(members, seeds, strict=True)
            )
            forest = series_forest(self.n_trees_series, self.n_jobs, seed)
            forest.fit(self._errors(trees, past), labels)
            if forest.oob_score_ > best:
                best, self.setting_ = forest.oob_score_, Setting(order, n_leaves)
                self.trees_, self.forest_ = trees, forest

    def _chances(self, series: Series) -> Chances:
        past = Past.of(series, self.setting_.order)
        return self.forest_.predict_proba(self._errors(self.trees_, past))

    def _errors(self, trees: list[RegressionTree], past: Past) -> Float[np.ndarray, "series errors"]:
        errors = np.concatenate(self._parallel(delayed(tree.errors)(past) for tree in trees), axis=1)
        logarithms = np.log(errors + FLOOR)
        return np.hstack([errors, logarithms - logarithms.mean(axis=1, keepdims=True)])

    def _check(self) -> None:
        check.positive_int("n_trees", self.n_trees)
        check_grid("orders", self.orders)
        check_grid("n_leaves", self.n_leaves, low=1)
        check.positive_int("n_trees_series", self.n_trees_series)

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return {"n_trees": 4, "orders": (2,), "n_leaves": (5,), "n_trees_series": 50, "random_state": 0}


class Past(NamedTuple):
    """The steps before each step of all series, the nearest first; before it began, a series stood still.

    `changes` lead from the nearest of them to the step itself.
    """

    values: Float[np.ndarray, "steps lags channels"]
    changes: Float[np.ndarray, "steps channels"]
    lengths: Int[np.ndarray, " series"]

    @classmethod
    def of(cls, series: Series, order: int) -> Past:
        """So many steps back."""
        parts = []
        for values in series:
            early = np.pad(values, ((order, 0), (0, 0)), mode="edge")
            parts.append(np.stack([early[order - k : len(early) - k] for k in range(1, order + 1)], axis=1))
        changes = np.concatenate([differences(values) for values in series])
        return cls(np.concatenate(parts).astype(np.float32), changes, lengths_of(series))

    def predictors(self, n_lags: int) -> Float[np.ndarray, "steps predictors"]:
        """What a tree that looks so many steps back is given."""
        return self.values[:, :n_lags].reshape(len(self.values), -1)

    def rows(self, members: Int[np.ndarray, " members"]) -> Int[np.ndarray, " steps"]:
        """The steps of some of the series."""
        starts = np.cumsum(self.lengths) - self.lengths
        return np.concatenate([starts[i] + np.arange(self.lengths[i]) for i in members])


@dataclass(frozen=True)
class RegressionTree:
    """A tree with the number of steps that it looks back."""

    n_lags: int
    tree: DecisionTreeRegressor

    @classmethod
    def grow(cls, past: Past, own: Int[np.ndarray, " own"], n_leaves: int, seed: int) -> RegressionTree:
        """For a number of lags drawn at random, on a part of the series of a class, `own`."""
        generator = np.random.default_rng(seed)
        n_lags = int(generator.integers(1, past.values.shape[1] + 1))
        members = generator.choice(own, size=max(round(PART * len(own)), 1), replace=False)
        rows = past.rows(members)
        tree = DecisionTreeRegressor(max_leaf_nodes=n_leaves, max_features=1 / 3, random_state=seed)
        return cls(n_lags, tree.fit(past.predictors(n_lags)[rows], past.changes[rows]))

    def errors(self, past: Past) -> Float[np.ndarray, "series channels"]:
        """The mean squared error on each series, for each channel."""
        predicted = self.tree.predict(past.predictors(self.n_lags)).reshape(past.changes.shape)
        starts = np.cumsum(past.lengths) - past.lengths
        return np.add.reduceat((predicted - past.changes) ** 2, starts, axis=0) / past.lengths[:, None]
