"""Weights of classes and rows in training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2tens import training
from seq2tens._checks import ArgumentError, require


def row_weights(sample_weight: Any, labels: Int[Tensor, " rows"]) -> Float[Tensor, " rows"] | None:
    """Return row weights with mean 1; every class needs a row of positive weight."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    n = len(labels)
    require(weights.shape == (n,), f"`sample_weight` must have shape ({n},), got {weights.shape}")
    for i in np.flatnonzero(~np.isfinite(weights) | (weights < 0)):
        raise ArgumentError(f"`sample_weight` must be finite and at least 0, got {weights[i]} at index {i}")
    totals = np.bincount(labels.numpy(), weights)
    require(
        bool((totals > 0).all()),
        "`sample_weight` must be above 0 for at least one row of every class, got classes with zeros only",
    )
    return torch.from_numpy(weights / weights.mean()).float()


def class_weights(
    class_weight: Any, classes: np.ndarray, labels: Int[Tensor, " rows"], weights: Tensor | None
) -> Float[Tensor, " classes"] | None:
    """Return the weight of each class: None, balanced over the rows, or as given (1 by default)."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str) and class_weight == "balanced":
        return training.class_weights(labels, weights)
    require(
        isinstance(class_weight, Mapping),
        f"`class_weight` must be None, 'balanced' or a dictionary of weights by label, got {class_weight!r}",
    )
    known = classes.tolist()
    unknown = [label for label in class_weight if label not in known]
    require(not unknown, f"`class_weight` must only have labels of `y`, {known}, got also {unknown}")
    values = [float(class_weight.get(label, 1.0)) for label in known]
    require(
        all(0 <= weight < float("inf") for weight in values),
        f"`class_weight` must be finite and at least 0, got {values}",
    )
    return torch.tensor(values)
