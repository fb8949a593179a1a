"""Autoregressive kernel (Cuturi & Doucet 2011) with a support vector machine."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC
from sklearn.utils.parallel import delayed

from seq2tens import _checks as check
from seq2tens.experiments.baselines.base import (
    BaselineClassifier,
    Labels,
    Probabilities,
    Series,
    balanced_sample,
    check_grid,
)

# The number of entries of the matrices that are factorised in one call.
BATCH = 1_000_000
Matrix = Float[np.ndarray, "left right"]


class Setting(NamedTuple):
    """A setting for cross-validation; `bandwidth` is in medians of the distances between training series."""

    order: int
    evidence: float
    bandwidth: float
    penalty: float


@dataclass(kw_only=True, eq=False, repr=False)
class ARKernelClassifier(BaselineClassifier):
    """A classifier in which series are similar if one vector autoregressive model explains both.

    The model of order p predicts each step by a linear map of the p steps before it and a constant. The
    likelihoods of two series, each to the power of one over its number of steps, are multiplied and averaged
    over all models, with a matrix-normal inverse-Wishart prior. With Z the second moments of predictors and
    predicted steps, averaged over both series, and Y those of the predictors alone, this is a constant times

        |I + Y|^-(1 - α) · (|I + Z| / |I + Y|)^-α

    to a power, which becomes the bandwidth of the kernel; α depends on the prior's degrees of freedom.

    Args:
        orders: candidates for p; smaller if a training series is too short.
        evidences: candidates for the weight of the data against the prior, which multiplies Y and Z.
        bandwidths: candidates for the bandwidth, in medians of the distance between training series.
        penalties: candidates for the penalty C of the support vector machine.
        alpha: α, in (0, 1).
        n_folds: number of folds of the cross-validation within the training data.
        sample: maximum number of training series for the cross-validation.
        scaling: as in `BaselineClassifier`, with `n_jobs` and `random_state`.

    After `fit`, `setting_` is the chosen setting.
    """

    orders: Sequence[int] = (5, 3, 1)
    evidences: Sequence[float] = (100.0, 1.0, 10_000.0)
    bandwidths: Sequence[float] = (1.0, 0.3, 3.0)
    penalties: Sequence[float] = (10.0, 1.0, 100.0)
    alpha: float = 0.5
    n_folds: int = 5
    sample: int = 500

    _tags: ClassVar[dict[str, Any]] = {"algorithm_type": "distance"}

    def _learn(self, series: Series, labels: Labels, seed: int) -> None:
        self._check()
        rows = balanced_sample(labels, self.sample, seed)
        self.setting_ = self._choose([series[i] for i in rows], labels[rows], seed)
        self.train_ = self._transitions(series, self.setting_)
        distances, self.diagonal_ = self._pairwise_distances(self.train_)
        self.unit_ = self.setting_.bandwidth * median(distances)
        self._svm = svm(self.setting_.penalty).fit(np.exp(-distances / self.unit_), labels)

    def _probabilities(self, series: Series) -> Probabilities:
        new = self._transitions(series, self.setting_)
        diagonal = np.array([new.log_kernel(i, new, np.array([i]))[0] for i in range(len(series))])
        columns = np.arange(len(series))
        between = self._rows(partial(self.train_.log_kernel, other=new, columns=columns), len(self.train_))
        distances = (self.diagonal_[:, None] + diagonal) / 2 - between
        return self._one_hot(self._svm.predict(np.exp(-distances.T / self.unit_)))

    def _check(self) -> None:
        for name in ("orders", "evidences", "bandwidths", "penalties"):
            check_grid(name, getattr(self, name))
        check.require(0 < self.alpha < 1, f"`alpha` must lie in (0, 1), got {self.alpha}")
        check.positive_int("sample", self.sample)
        check.require(self.n_folds >= 2, f"`n_folds` must be at least 2, got {self.n_folds}")

    def _choose(self, series: Series, labels: Labels, seed: int) -> Setting:
        """The best setting in cross-validation; the first one if there are ties."""
        grid = list(itertools.product(self.bandwidths, self.penalties))
        kernels = list(itertools.product(self._possible_orders(series), self.evidences))
        folds = stratified_folds(labels, self.n_folds, seed)
        if not folds or len(grid) * len(kernels) == 1:
            return Setting(*kernels[0], *grid[0])
        accuracies: dict[Setting, float] = {}
        for kernel in kernels:
            distances, _ = self._pairwise_distances(self._transitions(series, Setting(*kernel, *grid[0])))
            unit = median(distances)
            for bandwidth, penalty in grid:
                gram = np.exp(-distances / (bandwidth * unit))
                accuracy = held_out_accuracy(svm(penalty), gram, labels, folds)
                accuracies[Setting(*kernel, bandwidth, penalty)] = accuracy
        return max(accuracies, key=accuracies.__getitem__)

    def _possible_orders(self, series: Series) -> list[int]:
        longest = min(len(values) for values in series) - 1
        return list(dict.fromkeys(min(order, longest) for order in self.orders))

    def _transitions(self, series: Series, setting: Setting) -> Transitions:
        return Transitions.of(series, setting.order, setting.evidence, self.alpha)

    def _pairwise_distances(self, series: Transitions) -> tuple[Matrix, Float[np.ndarray, " rows"]]:
        """Distances of all pairs, and the log-kernel of each series with itself."""
        rows = self._rows(lambda i: series.log_kernel(i, series, np.arange(i + 1)), len(series))
        values = np.zeros((len(series), len(series)))
        for i, row in enumerate(rows):
            values[i, : i + 1] = values[: i + 1, i] = row
        diagonal = values.diagonal().copy()
        return (diagonal[:, None] + diagonal) / 2 - values, diagonal

    def _rows(self, row: Any, n: int) -> Any:
        return self._parallel(delayed(row)(i) for i in range(n))

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return {"orders": (2,), "evidences": (1.0,), "bandwidths": (1.0,), "n_folds": 2, "random_state": 0}


class Transitions:
    """Predictors and predicted steps side by side, one row per step, scaled so that squares sum to a mean.

    Series are padded with rows of zeros, which do not change the determinants.
    """

    def __init__(
        self, rows: Float[np.ndarray, "series steps width"], n_predictors: int, alpha: float
    ) -> None:
        self.rows, self.n_predictors, self.alpha = rows, n_predictors, alpha

    @classmethod
    def of(cls, series: Series, order: int, evidence: float, alpha: float) -> Transitions:
        """Create the transitions of several series; the first step of short ones is repeated in front."""
        parts = [transitions(values, order) * np.sqrt(evidence / 2) for values in series]
        rows = np.zeros((len(parts), max(map(len, parts)), parts[0].shape[1]))
        for i, part in enumerate(parts):
            rows[i, : len(part)] = part
        return cls(rows, 1 + order * series[0].shape[1], alpha)

    def __len__(self) -> int:
        return len(self.rows)

    def log_kernel(self, row: int, other: Transitions, columns: Int[np.ndarray, " n"]) -> np.ndarray:
        """Logarithm of the kernel between one series and several others, without bandwidth."""
        # Both functions give the same determinants; choose the one with the smaller matrices.
        steps, width = self.rows.shape[1] + other.rows.shape[1], self.rows.shape[2]
        determinants = self._by_moments if width <= steps else self._by_steps
        n_batches = -(-len(columns) * min(width, steps) ** 2 // BATCH)
        parts = [determinants(row, other, part) for part in np.array_split(columns, n_batches)]
        predictors, all_columns = np.concatenate(parts, axis=1)
        return (2 * self.alpha - 1) * predictors - self.alpha * all_columns

    def _by_moments(self, row: int, other: Transitions, columns: np.ndarray) -> np.ndarray:
        moments = self._moments[row] + other._moments[columns]
        logs = log_pivots(moments)
        return np.stack([logs[:, : self.n_predictors].sum(axis=1), logs.sum(axis=1)])

    def _by_steps(self, row: int, other: Transitions, columns: np.ndarray) -> np.ndarray:
        repeated = np.broadcast_to(self.rows[row], (len(columns), *self.rows.shape[1:]))
        rows = np.concatenate([repeated, other.rows[columns]], axis=1)
        predictors, predicted = np.split(rows, [self.n_predictors], axis=2)
        first = predictors @ predictors.mT
        grams = (first, first + predicted @ predicted.mT)
        return np.stack([log_pivots(gram).sum(axis=1) for gram in grams])

    @cached_property
    def _moments(self) -> Float[np.ndarray, "series width width"]:
        return self.rows.mT @ self.rows


def transitions(values: Float[np.ndarray, "time channels"], order: int) -> Float[np.ndarray, "steps width"]:
    """For each step with `order` steps before it: 1, those steps and the step, divided by the root of n."""
    missing = max(order + 1 - len(values), 0)
    values = np.pad(values, ((missing, 0), (0, 0)), mode="edge")
    n = len(values) - order
    lags = [values[order - k : order - k + n] for k in range(1, order + 1)]
    return np.hstack([np.ones((n, 1)), *lags, values[order:]]) / np.sqrt(n)


def log_pivots(matrices: Float[np.ndarray, "n width width"]) -> Float[np.ndarray, "n width"]:
    """Log-pivots: they sum to log |I + matrix|, and the first k to that of the leading k × k submatrix."""
    try:
        factors = np.linalg.cholesky(matrices + np.eye(matrices.shape[-1]))
    except np.linalg.LinAlgError as error:
        raise check.ArgumentError(
            "`X` must have values of the order of 1 after scaling, got some so large that a determinant has "
            "no correct digits"
        ) from error
    return 2 * np.log(np.diagonal(factors, axis1=1, axis2=2))


def median(distances: Matrix) -> float:
    """The median of the distances that are not 0."""
    positive = distances[distances > 1e-9]
    return float(np.median(positive)) if len(positive) else 1.0


def stratified_folds(labels: Labels, n_folds: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and held-out rows of classes with two or more series; empty without two such classes."""
    counts = np.bincount(labels)
    rows = np.flatnonzero(counts[labels] > 1)
    if len(np.unique(labels[rows])) < 2:
        return []
    splitter = StratifiedKFold(int(min(n_folds, counts[counts > 1].min())), shuffle=True, random_state=seed)
    return [(rows[train], rows[held_out]) for train, held_out in splitter.split(rows, labels[rows])]


def svm(penalty: float) -> SVC:
    """A support vector machine; without `random_state` it would use numpy's global generator."""
    return SVC(C=penalty, kernel="precomputed", random_state=0)


def held_out_accuracy(classifier: SVC, gram: Matrix, labels: Labels, folds: Any) -> float:
    """The accuracy on held-out series."""
    right = 0.0
    for train, held_out in folds:
        classifier.fit(gram[np.ix_(train, train)], labels[train])
        right += np.sum(classifier.predict(gram[np.ix_(held_out, train)]) == labels[held_out])
    return right / sum(len(held_out) for _, held_out in folds)
