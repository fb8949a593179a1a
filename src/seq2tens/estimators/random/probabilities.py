"""Conversion of the scores of a linear model to probabilities of classes, or of several labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2tens import _checks as check

# Candidates for the inverse temperature of the softmax.
INVERSE_TEMPERATURES = tuple(2.0 ** (k / 2) for k in range(-4, 15))


def best_inverse_temperature(scores: Float[Tensor, "rows classes"], labels: Tensor, weights: Tensor) -> float:
    """Return the factor of the scores with the highest likelihood of the labels under a softmax.

    Labels are smoothed by one extra observation per class (Laplace's rule of succession): a few rows without
    an error do not mean that errors have probability 0.
    """
    rows, classes = scores.shape
    smoothing = classes / (rows + classes)
    losses = [
        float(
            torch.nn.functional.cross_entropy(
                scores.double() * factor, labels, reduction="none", label_smoothing=smoothing
            )
            @ weights.double()
        )
        for factor in INVERSE_TEMPERATURES
    ]
    return INVERSE_TEMPERATURES[int(np.argmin(losses))]


def best_for_labels(
    scores: Float[Tensor, "rows labels"], present: Int[Tensor, "rows labels"], weights: Tensor
) -> float:
    """Return the best inverse temperature for several labels per sequence, one for all labels."""
    return best_inverse_temperature(
        as_pairs(scores).flatten(0, 1), present.flatten(), weights.repeat_interleave(scores.shape[1])
    )


def as_pairs(scores: Float[Tensor, "rows labels"]) -> Float[Tensor, "rows labels 2"]:
    """Return the scores of absence and presence of each label."""
    return torch.stack([-scores, scores], dim=-1)


def as_indicators(y: Any, n: int) -> Int[np.ndarray, "rows labels"]:
    """Return which labels each of `n` sequences has, as 0 and 1."""
    values = np.asarray(y)
    check.require(
        len(values) == n, f"`y` must have {n} rows, one for each sequence of `X`, got {len(values)}"
    )
    check.require(values.shape[1] > 0, f"`y` must have at least one label, got shape {values.shape}")
    other = [value for value in np.unique(values).tolist() if value not in (0, 1)]
    check.require(not other, f"`y` with two axes must hold 0 and 1 only, got {other[:1]}")
    return values.astype(np.int64)
