"""Autoregressive forests for multivariate time series (Tuncel & Baydogan 2018)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.parallel import delayed

from seq2tens import _checks as check
from seq2tens.experiments.baselines.base import (
    BaselineClassifier,
    Chances,
    Labels,
    Series,
    check_grid,
    lengths_of,
)
from seq2tens.experiments.baselines.leaves import bag, series_forest

# Steps that a tree is grown on at most.
STEPS = 25_000


class Setting(NamedTuple):
    """What out-of-bag errors choose: the longest lag, and leaves of each tree."""

    order: int
    n_leaves: int


@dataclass(kw_only=True, eq=False, repr=False)
class MVARFClassifier(BaselineClassifier):
    """Regression trees predict a series from its past, a forest classifies series by the leaves they reach.

    Each tree predicts one channel from a number of steps before, of all channels; both are drawn at random.
    Its leaves are situations that go on differently; a series is the part of its steps spent in each. (In the
    original it is what such trees miss; inside training sets that did no better.)

    Args:
        n_trees: regression trees.
        orders: longest lags to choose from; a tree looks back at most so many steps.
        n_leaves: leaves of the trees to choose from.
        n_trees_series: size of the forest that classifies.
        scaling: as in `BaselineClassifier`, with `n_jobs` and `random_state`.

    Choices are made by the out-of-bag error of that forest; `setting_` says what was chosen.
    """

    n_trees: int = 100
    orders: Sequence[int] = (5, 2, 10)
    n_leaves: Sequence[int] = (50, 100)
    n_trees_series: int = 200

    _tags: ClassVar[dict[str, Any]] = {"algorithm_type": "dictionary"}

    def _learn(self, series: Series, labels: Labels, seed: int) -> None:
        self._check()
        values = np.concatenate(series)
        seeds = np.random.default_rng(seed).integers(2**31, size=self.n_trees)
        best = -1.0
        for order, n_leaves in itertools.product(self.orders, self.n_leaves):
            past = Past.of(series, order)
            trees = self._parallel(
                delayed(RegressionTree.grow)(past, values, n_leaves, int(s)) for s in seeds
            )
            forest = series_forest(self.n_trees_series, self.n_jobs, seed)
            forest.fit(self._situations(trees, past), labels)
            if forest.oob_score_ > best:
                best, self.setting_ = forest.oob_score_, Setting(order, n_leaves)
                self.trees_, self.forest_ = trees, forest

    def _chances(self, series: Series) -> Chances:
        past = Past.of(series, self.setting_.order)
        return self.forest_.predict_proba(self._situations(self.trees_, past))

    def _situations(self, trees: list[RegressionTree], past: Past) -> Float[np.ndarray, "series leaves"]:
        return np.concatenate(self._parallel(delayed(tree.bag)(past) for tree in trees), axis=1)

    def _check(self) -> None:
        check.positive_int("n_trees", self.n_trees)
        check_grid("orders", self.orders)
        check_grid("n_leaves", self.n_leaves, low=1)
        check.positive_int("n_trees_series", self.n_trees_series)

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return {"n_trees": 4, "orders": (2,), "n_leaves": (5,), "n_trees_series": 50, "random_state": 0}


class Past(NamedTuple):
    """The steps before each step of all series, the nearest first; before it began, a series stood still."""

    values: Float[np.ndarray, "steps lags channels"]
    lengths: Int[np.ndarray, " series"]

    @classmethod
    def of(cls, series: Series, order: int) -> Past:
        """So many steps back."""
        parts = []
        for values in series:
            early = np.pad(values, ((order, 0), (0, 0)), mode="edge")
            parts.append(np.stack([early[order - k : len(early) - k] for k in range(1, order + 1)], axis=1))
        return cls(np.concatenate(parts).astype(np.float32), lengths_of(series))

    def known(self, n_lags: int) -> tuple[Bool[np.ndarray, " steps"], Int[np.ndarray, " series"]]:
        """Steps with so many before them, or that end a shorter series; how many each series has."""
        ages = np.concatenate([np.arange(length) for length in self.lengths])
        firsts = np.minimum(n_lags, self.lengths - 1)
        return ages >= np.repeat(firsts, self.lengths), self.lengths - firsts


@dataclass(frozen=True)
class RegressionTree:
    """A tree with the number of steps that it looks back."""

    n_lags: int
    tree: DecisionTreeRegressor

    @classmethod
    def grow(
        cls, past: Past, values: Float[np.ndarray, "steps channels"], n_leaves: int, seed: int
    ) -> RegressionTree:
        """For a channel and a number of lags drawn at random, on steps drawn with replacement."""
        generator = np.random.default_rng(seed)
        n_lags = int(generator.integers(1, past.values.shape[1] + 1))
        channel = generator.integers(values.shape[1])
        known = np.flatnonzero(past.known(n_lags)[0])
        steps = generator.choice(known, size=min(len(known), STEPS))
        tree = DecisionTreeRegressor(max_leaf_nodes=n_leaves, max_features=1 / 3, random_state=seed)
        predictors = past.values[steps, :n_lags].reshape(len(steps), -1)
        return cls(n_lags, tree.fit(predictors, values[steps, channel]))

    def bag(self, past: Past) -> Float[np.ndarray, "series leaves"]:
        """Part of each series' steps in each leaf."""
        known, lengths = past.known(self.n_lags)
        return bag(self.tree, past.values[known, : self.n_lags].reshape(lengths.sum(), -1), lengths)
