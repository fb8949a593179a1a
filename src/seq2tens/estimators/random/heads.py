"""A scikit-learn model in place of ridge regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.base import clone
from torch import Tensor

from seq2tens import _checks as check
from seq2tens.estimators.random.ridge import Table, standardize, statistics


class Head:
    """A fitted copy of any classifier or regressor, on standardised features."""

    def __init__(self, model: Any, table: Table, targets: np.ndarray, weights: Tensor) -> None:
        check.require(
            hasattr(model, "fit") and hasattr(model, "predict"),
            f"`head` must be a classifier or regressor of scikit-learn, got {model!r}",
        )
        self.mean, self.scale = statistics(table, weights)
        even = bool((weights == weights[0]).all())
        counted = {} if even else {"sample_weight": weights.double().numpy()}
        self.model = clone(model).fit(self._standardized(table), targets, **counted)

    def predict(self, table: Table) -> np.ndarray:
        """Return the predictions of the model; the table is overwritten."""
        return np.asarray(self.model.predict(self._standardized(table)))

    def probabilities(self, table: Table, classes: int) -> Float[np.ndarray, "rows classes"]:
        """Return class probabilities, 0 or 1 if the model predicts none; the table is overwritten."""
        if not hasattr(self.model, "predict_proba"):
            codes: Int[np.ndarray, " rows"] = self.predict(table)
            return np.eye(classes)[codes]
        return np.asarray(self.model.predict_proba(self._standardized(table)), dtype=np.float64)

    def _standardized(self, table: Table) -> Float[np.ndarray, "rows features"]:
        return standardize(table, self.mean, self.scale).numpy()
