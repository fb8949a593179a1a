"""Base class of regressors, in the style of scikit-learn and aeon."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from aeon.regression.base import BaseRegressor
from jaxtyping import Float
from sklearn.base import RegressorMixin, clone
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_predict
from typing_extensions import Self

from seq2tens._checks import ArgumentError, require
from seq2tens.data import Sequences
from seq2tens.estimators.base import SequenceEstimator
from seq2tens.estimators.inputs import as_sequences
from seq2tens.estimators.saving import Storable
from seq2tens.estimators.saving.exporting import Exportable

Values = Float[np.ndarray, "rows *targets"]


class SequenceRegressor(RegressorMixin, SequenceEstimator, Storable, Exportable):
    """Base class of regressors of sequences, with one target or several.

    aeon's template methods are final, and support neither sample weights nor several targets. This class
    therefore defines its own, and is registered as a virtual subclass of aeon's base class. A subclass
    implements `_fit(X, y, sample_weight)`, in which `y` has the axes (rows, targets), and `_predict(X)`,
    which returns an array with the same axes.
    """

    _tags: ClassVar[dict[str, Any]] = BaseRegressor.get_class_tags() | SequenceEstimator._tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the regressor to sequences and numbers; a previous fit is discarded.

        Args:
            X: sequences, in any form that classifiers take.
            y: one number per sequence, or several: `(n,)` or `(n, targets)`; None for the labels of `X`.
            sample_weight: weight of each sequence; only ratios matter, and twice the weight counts as two
                copies.
        """
        self.reset()
        known = self._learn_collection(X)
        numbers = known.labels if y is None else y
        require(numbers is not None, "`y` must be given, since `X` has no labels")
        targets = as_targets(numbers, len(known))
        self.n_targets_ = None if targets.ndim == 1 else targets.shape[1]
        self._fit(known.sequences, targets.reshape(len(targets), -1), sample_weight)
        self.is_fitted = True
        return self

    def predict(self, X: Any) -> Values:
        """Predict the target of each sequence, or all of its targets if there were several in `fit`."""
        values = self._predict(self._as_in_fit(X))
        return values[:, 0] if self.n_targets_ is None else values

    def fit_predict(self, X: Any, y: Any, *, cv_size: int = 10) -> Values:
        """Fit the regressor, and return cross-validated predictions for the same sequences."""
        self.fit(X, y)
        return cross_val_predict(clone(self), as_sequences(X), np.asarray(y), cv=cv_size)

    def score(
        self, X: Any, y: Any, metric: Any = "r2", metric_params: Any = None, sample_weight: Any = None
    ) -> float:
        """Return the R² of the predictions, or another metric.

        `metric` is the name of a metric of scikit-learn, or a function of true and predicted targets.
        """
        params = dict(metric_params or {})
        if sample_weight is not None:
            params["sample_weight"] = sample_weight
        if metric == "r2":
            return float(r2_score(as_targets(y, None), self.predict(X), **params))
        return BaseRegressor.score(self, X, y, metric, params or None)

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "targets": self.n_targets_}

    def _restore(self, tensors: Any, facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        self.n_targets_ = facts.get("targets")  # older models have a single target

    def _check_y(self, y: Any, n_cases: int) -> Values:
        """Return the targets as an array: aeon's hook, used for scoring."""
        return as_targets(y, n_cases)

    def _fit(self, X: Sequences, y: Float[np.ndarray, "rows targets"], sample_weight: Any = None) -> None:
        raise NotImplementedError

    def _predict(self, X: Sequences) -> Float[np.ndarray, "rows targets"]:
        raise NotImplementedError


BaseRegressor.register(SequenceRegressor)


def as_targets(y: Any, n: int | None) -> Values:
    """Return the targets of `n` sequences as float64, `(n,)` or `(n, targets)`."""
    try:
        targets = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"`y` must hold numbers, got {np.asarray(y).ravel()[0]!r} ({error})") from error
    require(
        targets.ndim == 1 or (targets.ndim == 2 and targets.shape[1] > 0),
        f"`y` must have the axes (sequences,) or (sequences, targets), got shape {targets.shape}",
    )
    require(
        n is None or len(targets) == n,
        f"`y` must have {n} rows, one for each sequence of `X`, got {len(targets)}",
    )
    wrong = np.argwhere(~np.isfinite(targets))
    require(
        len(wrong) == 0,
        f"`y` must be finite, got {targets[tuple(wrong[0])] if len(wrong) else ''} "
        f"at index {wrong[0, 0] if len(wrong) else ''}",
    )
    return targets


def spread_of(targets: Values) -> Values:
    """Return the standard deviation of every target, 1 for a constant one."""
    with np.errstate(over="ignore", invalid="ignore"):
        spread = targets.std(axis=0)
    finite = bool(np.isfinite(spread).all())
    require(
        finite, f"`y` must have a finite standard deviation, got values up to {np.abs(targets).max():.3g}"
    )
    return np.where(spread > 0, spread, 1.0)
