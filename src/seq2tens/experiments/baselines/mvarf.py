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
    Labels,
    Probabilities,
    Series,
    check_grid,
    differences,
    lengths_of,
)

# The fraction of a class on which a tree is grown; it predicts the other series of the class.
PART = 0.5
# Added to mean squared errors, of values of the order of 1, before taking logarithms.
FLOOR = 1e-8
# A class has forests for at most this many numbers of lags.
LAGS = 5
# The views of a series: as it is, and standardised by itself.
VIEWS = 2
# Folds of the cross-validation; fewer if a class has fewer series.
FOLDS = 5

Errors = Float[np.ndarray, "series channels"]


class Setting(NamedTuple):
    """A setting for cross-validation: the longest lag, the number of leaves and of views, and the penalty."""

    order: int
    n_leaves: int
    n_views: int
    penalty: float


@dataclass(kw_only=True, eq=False, repr=False)
class MVARFClassifier(BaselineClassifier):
    """A classifier on the errors of regression forests that predict series from their past.

    There is a forest for each class and each of several numbers of lags. Its trees are grown on random series
    of the class and predict the change of all channels from that many previous steps. A series is represented
    by the logarithms of the errors of all forests on each of its channels; their mean is subtracted, because
    some series are hard to predict for all forests. A support vector machine classifies. There are one or two
    views of a series, each with its forests and errors: as it is, and standardised by itself.

    Errors on a training series are those of trees that were not grown on it, since a tree predicts its own
    series far better than new ones.

    Args:
        n_trees: number of trees of each forest.
        orders: candidates for the longest lag; a class has forests for at most five numbers of lags up to it.
        n_leaves: candidates for the number of leaves of the trees.
        penalties: candidates for the penalty C of the support vector machine.
        scaling: as in `BaselineClassifier`, with `n_jobs` and `random_state`.

    The setting is chosen by cross-validation of the support vector machine on the training data; `setting_`
    is the chosen one.
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
                centered(self._parallel(delayed(forest.out_of_bag_errors)(past) for forest in of_view))
                for past, of_view in zip(pasts, forests, strict=True)
            ]
            for n_views, penalty in itertools.product(range(1, VIEWS + 1), self.penalties):
                features = np.hstack(errors[:n_views])
                score = accuracy_in_folds(features, labels, penalty, seed)
                if score > best:
                    best, self.setting_ = score, Setting(order, n_leaves, n_views, penalty)
                    self.forests_, chosen = forests[:n_views], features
        self.svm_ = svm(self.setting_.penalty).fit(chosen, labels)

    def _grow(self, past: Past, labels: Labels, n_leaves: int, seed: int) -> list[Forest]:
        lags = np.unique(np.linspace(1, past.values.shape[1], LAGS).round().astype(int))
        combinations = list(itertools.product(range(self.n_classes_), lags))
        seeds = np.random.default_rng(seed).integers(2**31, size=(len(combinations), self.n_trees))
        return self._parallel(
            delayed(Forest.grow)(past, np.flatnonzero(labels == label), int(n_lags), n_leaves, tree_seeds)
            for (label, n_lags), tree_seeds in zip(combinations, seeds, strict=True)
        )

    def _probabilities(self, series: Series) -> Probabilities:
        pasts = pasts_of(series, self.setting_.order, self.setting_.n_views)
        features = [
            centered(self._parallel(delayed(forest.errors)(past) for forest in of_view))
            for past, of_view in zip(pasts, self.forests_, strict=True)
        ]
        return self._one_hot(self.svm_.predict(np.hstack(features)))

    def _check(self) -> None:
        check.positive_int("n_trees", self.n_trees)
        check_grid("orders", self.orders)
        check_grid("n_leaves", self.n_leaves, low=1)
        check_grid("penalties", self.penalties)

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return {"n_trees": 4, "orders": (2,), "n_leaves": (5,), "penalties": (10.0,), "random_state": 0}


def pasts_of(series: Series, order: int, n_views: int) -> list[Past]:
    """The pasts of all series, for each of the first `n_views` views."""
    views = [series, [standardized(values) for values in series]]
    return [Past.of(view, order) for view in views[:n_views]]


def standardized(values: Float[np.ndarray, "time channels"]) -> Float[np.ndarray, "time channels"]:
    """Scale each channel to mean 0 and variance 1; a constant one is only shifted."""
    deviation = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


def centered(errors: list[Errors]) -> Float[np.ndarray, "series errors"]:
    """Concatenate errors and subtract the mean of each series."""
    features = np.concatenate(errors, axis=1)
    return features - features.mean(axis=1, keepdims=True)


def svm(penalty: float) -> Pipeline:
    """A support vector machine on standardised features."""
    return make_pipeline(StandardScaler(), SVC(C=penalty, random_state=0))


def accuracy_in_folds(
    features: Float[np.ndarray, "series errors"], labels: Labels, penalty: float, seed: int
) -> float:
    """The cross-validated accuracy; 0 if a class has a single series, so that the first setting is chosen."""
    folds = min(FOLDS, int(np.bincount(labels).min()))
    if folds < 2:
        return 0.0
    splits = StratifiedKFold(folds, shuffle=True, random_state=seed)
    return float(cross_val_score(svm(penalty), features, labels, cv=splits).mean())


class Past(NamedTuple):
    """The previous steps of each step of all series, the latest first; the first step is repeated in front.

    `changes` are the differences of each step from the previous one.
    """

    values: Float[np.ndarray, "steps lags channels"]
    changes: Float[np.ndarray, "steps channels"]
    lengths: Int[np.ndarray, " series"]

    @classmethod
    def of(cls, series: Series, order: int) -> Past:
        """Create the past of several series, with `order` lags."""
        parts = []
        for values in series:
            early = np.pad(values, ((order, 0), (0, 0)), mode="edge")
            parts.append(np.stack([early[order - k : len(early) - k] for k in range(1, order + 1)], axis=1))
        changes = np.concatenate([differences(values) for values in series])
        return cls(np.concatenate(parts).astype(np.float32), changes, lengths_of(series))

    def predictors(self, n_lags: int) -> Float[np.ndarray, "steps predictors"]:
        """The inputs of a tree with this many lags."""
        return self.values[:, :n_lags].reshape(len(self.values), -1)

    def rows(self, members: Int[np.ndarray, " members"]) -> Int[np.ndarray, " steps"]:
        """The rows with the steps of some of the series."""
        starts = np.cumsum(self.lengths) - self.lengths
        return np.concatenate([starts[i] + np.arange(self.lengths[i]) for i in members])


@dataclass(frozen=True)
class Forest:
    """The trees of one class and one number of lags, each with the series on which it was grown."""

    n_lags: int
    trees: tuple[DecisionTreeRegressor, ...]
    members: tuple[Int[np.ndarray, " members"], ...]

    @classmethod
    def grow(
        cls,
        past: Past,
        of_class: Int[np.ndarray, " series"],
        n_lags: int,
        n_leaves: int,
        seeds: Int[np.ndarray, " trees"],
    ) -> Forest:
        """Grow trees on the series of a class; each leaves out at least one series if there are two."""
        predictors, size = past.predictors(n_lags), max(round(PART * len(of_class)), 1)
        trees, members = [], []
        for seed in map(int, seeds):
            members.append(np.random.default_rng(seed).choice(of_class, size, replace=False))
            rows = past.rows(members[-1])
            tree = DecisionTreeRegressor(max_leaf_nodes=n_leaves, max_features=1 / 3, random_state=seed)
            trees.append(tree.fit(predictors[rows], past.changes[rows]))
        return cls(n_lags, tuple(trees), tuple(members))

    def errors(self, past: Past) -> Errors:
        """Logarithms of the mean squared errors by series and channel, averaged over trees."""
        return np.mean(self._tree_errors(past), axis=0)

    def out_of_bag_errors(self, past: Past) -> Errors:
        """The same for training series, averaged over trees that were not grown on the series, or over all
        trees if there are none."""
        weights = np.ones((len(self.trees), len(past.lengths)))
        for weight, members in zip(weights, self.members, strict=True):
            weight[members] = 0.0
        weights[:, ~weights.any(axis=0)] = 1.0
        return np.einsum("tsc,ts->sc", self._tree_errors(past), weights / weights.sum(axis=0))

    def _tree_errors(self, past: Past) -> Float[np.ndarray, "trees series channels"]:
        predictors, starts = past.predictors(self.n_lags), np.cumsum(past.lengths) - past.lengths
        squares = [
            (tree.predict(predictors).reshape(past.changes.shape) - past.changes) ** 2 for tree in self.trees
        ]
        sums = np.stack([np.add.reduceat(square, starts, axis=0) for square in squares])
        return np.log(sums / past.lengths[:, None] + FLOOR)
