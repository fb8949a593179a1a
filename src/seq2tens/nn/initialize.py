"""Initial weights: every coordinate of the level-m functional gets variance 2 / (d^m + width).

With symmetric weights one vector serves all positions and all levels, so only the highest level has this
variance, at coordinates whose letters all differ.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def component_variances(in_features: int, width: int, order: int, weights: str) -> list[float]:
    """Return the variance of the coordinates of each vector z, in the order of the weight's components."""
    if weights == "symmetric":
        return [(2 / (in_features**order + width)) ** (1 / order)]
    if weights == "independent":
        return [(2 / (in_features**m + width)) ** (1 / m) for m in range(1, order + 1) for _ in range(m)]
    first = 2 / (in_features + width)
    later = [(in_features**m + width) / (in_features ** (m + 1) + width) for m in range(1, order)]
    return [first, *later]


@torch.no_grad()
def initialize_(
    weight: Tensor, order: int, weights: str, init: str, generator: torch.Generator | None = None
) -> None:
    """Fill `weight`, of shape (components, in_features, width), in place with uniform or normal values."""
    _, in_features, width = weight.shape
    for component, variance in zip(
        weight, component_variances(in_features, width, order, weights), strict=True
    ):
        if init == "uniform":
            bound = math.sqrt(3 * variance)
            component.uniform_(-bound, bound, generator=generator)
        else:
            component.normal_(0.0, math.sqrt(variance), generator=generator)
