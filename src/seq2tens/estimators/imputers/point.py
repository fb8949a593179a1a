"""Imputers that predict a single value; its error is estimated on entries held out in training."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from seq2tens._storage import Tensors
from seq2tens.data import Sequences, held_out
from seq2tens.estimators.imputers.base import Draws, Imputer
from seq2tens.estimators.imputers.formats import Values

# Levels at which the distribution of errors is kept.
LEVELS = np.linspace(0, 1, 1001)
# Fraction of the observed training entries that is hidden to estimate errors.
LEFT_OUT = 0.1


class PointImputer(Imputer):
    """Base class of imputers that predict a single value.

    Intervals and draws are the filled value plus an error from the training distribution of the channel.

    Subclasses implement `_learn(X)` and `_fill(X)`, and may override `_errors(X)`, which hides a tenth of the
    observed entries once. Attribute after `fit`: `errors_`, 1001 quantiles of the errors of each channel, 0
    for channels without any.
    """

    errors_: Float[np.ndarray, "levels channels"]

    def _fit(self, X: Sequences) -> None:
        super()._fit(X)
        self.errors_ = _quantiles(self._errors(X))

    def _errors(self, X: Sequences) -> Values:
        """Return truth minus filled value for some observed entries of the training data, NaN for others."""
        values, hidden = held_out(X.values, LEFT_OUT, np.random.default_rng(0))
        filled = self._fill(X.with_values(values))
        return np.where(hidden, X.values - filled, np.nan)

    def _intervals(self, X: Sequences, coverage: float) -> tuple[Values, Values]:
        filled = self._fill(X)
        low, high = (self._error_at(level) for level in ((1 - coverage) / 2, (1 + coverage) / 2))
        return filled + low, filled + high

    def _draws(self, X: Sequences, n: int, seed: int) -> Draws:
        levels = np.concatenate(
            [
                np.random.default_rng([seed, row]).random((n, length, X.n_channels))
                for row, length in enumerate(X.lengths.tolist())
            ],
            axis=1,
        )
        filled = self._fill(X)
        draws = np.empty(levels.shape)
        for channel in range(X.n_channels):
            errors = np.interp(levels[..., channel], LEVELS, self.errors_[:, channel])
            draws[..., channel] = filled[:, channel] + errors
        return draws

    def _error_at(self, level: float) -> Float[np.ndarray, " channels"]:
        return np.array([np.interp(level, LEVELS, errors) for errors in self.errors_.T])

    def _tensors(self) -> Tensors:
        return {**super()._tensors(), "errors": torch.from_numpy(self.errors_)}

    def _restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        self.errors_ = tensors["errors"].numpy()


def _quantiles(errors: Values) -> Float[np.ndarray, "levels channels"]:
    table = np.zeros((len(LEVELS), errors.shape[1]))
    for channel, column in enumerate(errors.T):
        observed = column[~np.isnan(column)]
        if len(observed):
            table[:, channel] = np.quantile(observed.astype(np.float64), LEVELS)
    return table
