"""Autoregressive forests for multivariate time series (Tuncel & Baydogan 2018)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
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

# Part of a class on which a tree is grown; the others are those that it can be asked about.
PART = 0.5
# Added to mean squared errors, of values of the order of 1, whose logarithm is taken.
FLOOR = 1e-8
# Numbers of lags that forests of a class look back, at most.
LAGS = 5
# A series as it is, and standardised by itself.
VIEWS = 2
# Of cross-validation, fewer where a class is smaller.
FOLDS = 5

Errors = Float[np.ndarray, "series channels"]


class Setting(NamedTuple):
    """What cross-validation chooses: the longest lag, leaves of each tree, views of a series, and the penalty
    of errors."""

    order: int
    n_leaves: int
    n_views: int
    penalty: float


@dataclass(kw_only=True, eq=False, repr=False)
class MVARFClassifier(BaselineClassifier):
    """Forests of regression trees predict series from their past, and series are classified by their errors.

    There is a forest for each class and each of some numbers of lags. Its trees are grown on some series of
    the class, drawn at random, and predict the change of all channels from so many steps before. A series is
    represented by the logarithms of the errors of all forests on each of its channels, less the series' mean
    of them, for series that are hard to predict for all. A support vector machine classifies. There are one
    or two views of a series, each with its forests and errors: as it is, and standardised by itself.

    Errors on a series of the training data are those of trees that were not grown on it. A tree knows its
    own series far better than any other of the class, and nothing of that would hold for new series.

    Args:
        n_trees: trees of each forest.
        orders: longest lags to choose from; a class has forests for at most five numbers of lags up to it.
        n_leaves: leaves of the trees to choose from.
        penalties: of the errors of the support vector machine, to choose from.
        scaling: as in `BaselineClassifier`, with `n_jobs` and `random_state`.

    Choices are made by cross-validation of that machine on training data; `setting_` says what was chosen.
    """

    n_trees: int = 10
    orders: Sequence[int] = (5, 2, 10)
    n_leaves: Sequence[int] = (50,)
    penalties: Sequence[float] = (10.0, 1.0, 100.0)

    _tags: ClassVar[dict[str, Any]] = {"algorithm_type": "dictionary"}

    def _learn(self, series: Series, labels: Labels, seed: int) -> None:
        self._check()
        best = -1.0
        for order, n_leaves in itertools.product(self.orders, self.n_leaves):
            pasts = pasts_of(series, order, VIEWS)
            forests = [self._grow(past, labels, n_leaves, seed) for past in pasts]
            errors = [
                centred(self._parallel(delayed(forest.unseen_errors)(past) for forest in of_view))
                for past, of_view in zip(pasts, forests, strict=True)
            ]
            for n_views, penalty in itertools.product(range(1, VIEWS + 1), self.penalties):
                features = np.hstack(errors[:n_views])
                score = accuracy_in_folds(features, labels, penalty, seed)
                if score > best:
                    best, self.setting_ = score, Setting(order, n_leaves, n_views, penalty)
                    self.forests_, chosen = forests[:n_views], features
        self.machine_ = machine(self.setting_.penalty).fit(chosen, labels)

    def _grow(self, past: Past, labels: Labels, n_leaves: int, seed: int) -> list[Forest]:
        lags = np.unique(np.linspace(1, past.values.shape[1], LAGS).round().astype(int))
        places = list(itertools.product(range(self.n_classes_), lags))
        seeds = np.random.default_rng(seed).integers(2**31, size=(len(places), self.n_trees))
        return self._parallel(
            delayed(Forest.grow)(past, np.flatnonzero(labels == label), int(n_lags), n_leaves, of_trees)
            for (label, n_lags), of_trees in zip(places, seeds, strict=True)
        )

    def _chances(self, series: Series) -> Chances:
        pasts = pasts_of(series, self.setting_.order, self.setting_.n_views)
        features = [
            centred(self._parallel(delayed(forest.errors)(past) for forest in of_view))
            for past, of_view in zip(pasts, self.forests_, strict=True)
        ]
        return self._one_hot(self.machine_.predict(np.hstack(features)))

    def _check(self) -> None:
        check.positive_int("n_trees", self.n_trees)
        check_grid("orders", self.orders)
        check_grid("n_leaves", self.n_leaves, low=1)
        check_grid("penalties", self.penalties)

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return {"n_trees": 4, "orders": (2,), "n_leaves": (5,), "penalties": (10.0,), "random_state": 0}


def pasts_of(series: Series, order: int, n_views: int) -> list[Past]:
    """Of the first so many views of all series."""
    views = [series, [standardised(values) for values in series]]
    return [Past.of(view, order) for view in views[:n_views]]


def standardised(values: Float[np.ndarray, "time channels"]) -> Float[np.ndarray, "time channels"]:
    """Each channel with mean 0 and variance 1; a constant one is only shifted."""
    deviation = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


def centred(errors: list[Errors]) -> Float[np.ndarray, "series errors"]:
    """Side by side, less the mean of each series."""
    together = np.concatenate(errors, axis=1)
    return together - together.mean(axis=1, keepdims=True)


def machine(penalty: float) -> Pipeline:
    """A support vector machine on standardised features."""
    return make_pipeline(StandardScaler(), SVC(C=penalty, random_state=0))


def accuracy_in_folds(
    features: Float[np.ndarray, "series errors"], labels: Labels, penalty: float, seed: int
) -> float:
    """Of the machine; 0 where a class has one series only, so that the first setting is taken."""
    folds = min(FOLDS, int(np.bincount(labels).min()))
    if folds < 2:
        return 0.0
    splits = StratifiedKFold(folds, shuffle=True, random_state=seed)
    return float(cross_val_score(machine(penalty), features, labels, cv=splits).mean())


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
class Forest:
    """Trees of one class that look the same number of steps back, each with the series it was grown on."""

    n_lags: int
    trees: tuple[DecisionTreeRegressor, ...]
    members: tuple[Int[np.ndarray, " members"], ...]

    @classmethod
    def grow(
        cls,
        past: Past,
        own: Int[np.ndarray, " own"],
        n_lags: int,
        n_leaves: int,
        seeds: Int[np.ndarray, " trees"],
    ) -> Forest:
        """On the series of a class, `own`; each tree leaves out at least one of them if there are two."""
        predictors, size = past.predictors(n_lags), max(round(PART * len(own)), 1)
        trees, members = [], []
        for seed in map(int, seeds):
            members.append(np.random.default_rng(seed).choice(own, size, replace=False))
            rows = past.rows(members[-1])
            tree = DecisionTreeRegressor(max_leaf_nodes=n_leaves, max_features=1 / 3, random_state=seed)
            trees.append(tree.fit(predictors[rows], past.changes[rows]))
        return cls(n_lags, tuple(trees), tuple(members))

    def errors(self, past: Past) -> Errors:
        """Logarithms of the mean squared errors on each series, for each channel; the mean over trees."""
        return np.mean(self._of_trees(past), axis=0)

    def unseen_errors(self, past: Past) -> Errors:
        """The same of the series that the forest was grown on, the mean over trees that were not grown on the
        series; over all trees, where all were."""
        weights = np.ones((len(self.trees), len(past.lengths)))
        for weight, members in zip(weights, self.members, strict=True):
            weight[members] = 0.0
        weights[:, ~weights.any(axis=0)] = 1.0
        return np.einsum("tsc,ts->sc", self._of_trees(past), weights / weights.sum(axis=0))

    def _of_trees(self, past: Past) -> Float[np.ndarray, "trees series channels"]:
        predictors, starts = past.predictors(self.n_lags), np.cumsum(past.lengths) - past.lengths
        squares = [
            (tree.predict(predictors).reshape(past.changes.shape) - past.changes) ** 2 for tree in self.trees
        ]
        sums = np.stack([np.add.reduceat(square, starts, axis=0) for square in squares])
        return np.log(sums / past.lengths[:, None] + FLOOR)
