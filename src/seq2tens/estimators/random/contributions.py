"""Additive contributions of the channels to the scores of a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from seq2tens import _checks as check
from seq2tens.estimators.random.explanation import Filter, describe_features
from seq2tens.estimators.random.features import RandomLS2TFeatures
from seq2tens.estimators.random.ridge import Ridge, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Contributions:
    """Contributions to the scores: `baseline` plus the sum of `values` over channels and levels is `scores`.

    The baseline is the score of a sequence whose features are the means of the training data. A feature
    contributes its deviation from that mean times its coefficient; if it reads several channels, the
    contribution is divided among them in proportion to their weights. Level m is the joint contribution of m
    steps in order.
    """

    channels: tuple[str, ...]
    targets: tuple[Any, ...]
    values: Float[np.ndarray, "rows channels levels targets"]
    baseline: Float[np.ndarray, " targets"]

    @property
    def scores(self) -> Float[np.ndarray, "rows targets"]:
        """The model's decision values, or its predictions in regression."""
        return self.baseline + self.values.sum(axis=(1, 2))

    def draw(self, row: int = 0, target: Any = None) -> Figure:
        """Draw a bar for each channel of one sequence, for `target` or the one with the highest score."""
        from seq2tens import plots

        number = int(self.scores[row].argmax()) if target is None else self._number(target)
        score, baseline = self.scores[row, number], self.baseline[number]
        title = f"score of {self.targets[number]}: {score:.3g} = {baseline:.3g} (baseline) + bars"
        return plots.contributions(self.channels, self.values[row, :, :, number], title)

    def _number(self, target: Any) -> int:
        known = list(self.targets)
        check.require(target in known, f"`target` must be one of {known}, got {target!r}")
        return known.index(target)


def contributions(
    features: RandomLS2TFeatures,
    ridge: Ridge,
    table: Table,
    targets: tuple[Any, ...],
    variables: Sequence[str] = (),
) -> Contributions:
    """Compute the contributions for a table of standardised features.

    `variables` are the names of the channels and static features.
    """
    names, shares = channel_shares(features, variables)
    parts = table.double()[:, :, None] * ridge.coefficients.double()
    values = torch.einsum("rft,fcl->rclt", parts, shares).numpy()
    return Contributions(names, targets, values, ridge.intercept.double().numpy())


def channel_shares(
    features: RandomLS2TFeatures, variables: Sequence[str]
) -> tuple[tuple[str, ...], Float[Tensor, "features channels levels"]]:
    """Return the names of the channels, and the share of each in each feature, at the feature's level."""
    names = tuple(features.preparation_.names(variables))
    places = {name: place for place, name in enumerate(names)}
    shares = np.zeros((features.n_features_, len(names), features.order))
    n = features.n_features_
    all_columns = describe_features(features, torch.ones(n, 1), None, n, variables)
    for row in all_columns:
        for filter in row.filters:
            indices = [places[channel] for channel in filter.channels]
            shares[row.column, indices, row.level - 1] += _weights(filter) / row.level
    return names, torch.from_numpy(shares)


def _weights(filter: Filter) -> Float[np.ndarray, " channels"]:
    """Return the weights of the channels of a convolution, with sum 1."""
    sizes = np.abs(filter.weights).sum(axis=0)
    return sizes / max(sizes.sum(), np.finfo(float).tiny)
