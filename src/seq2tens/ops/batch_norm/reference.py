"""Batch normalisation over the rows that count: the definition, in operations of torch."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as torch_F

Values = Float[Tensor, "*rows_channels_inner"]
Each = Float[Tensor, " channels"]


class Normalized(NamedTuple):
    """Normalised values, and the statistics that did it."""

    values: Values
    mean: Each
    variance: Each


class Settings(NamedTuple):
    """What is added to variances; where channels are, the last axis or with `inner` values each the last but
    one; whether negative results become 0; a factor for the result; and how far running statistics go to
    those of a batch."""

    eps: float
    inner: int | None = None
    rectified: bool = False
    scale: float = 1.0
    momentum: float = 0.0

    def channels(self, shape: torch.Size) -> int:
        """How many channels values of this shape have."""
        return shape[-1] if self.inner is None else shape[-2]


class Running(NamedTuple):
    """Statistics that follow those of batches, in place."""

    mean: Each
    variance: Each

    def follow(self, mean: Each, variance: Each, momentum: float) -> None:
        """Go some way to the statistics of a batch."""
        for old, new in zip(self, (mean, variance), strict=True):
            old.lerp_(new.to(old.dtype), momentum)


def normalize(
    x: Values,
    mask: Bool[Tensor, "*rows"] | None,
    weight: Each | None,
    bias: Each | None,
    settings: Settings,
) -> Normalized:
    """Normalise each channel with mean and variance of the rows where `mask` is True; the others become 0.

    Rows that do not count must be finite. No gradient flows through the statistics that are returned.
    """
    rows = x.reshape(-1, settings.channels(x.shape), settings.inner or 1)
    counts = x.new_ones(rows.shape[0], 1, 1) if mask is None else mask.to(x.dtype).reshape(-1, 1, 1)
    total = counts.sum().clamp(min=1) * rows.shape[2]
    mean = (counts * rows).sum((0, 2)) / total
    centred = rows - mean[:, None]
    variance = (counts * centred.square()).sum((0, 2)) / total
    y = centred * (variance + settings.eps).rsqrt()[:, None]
    y = y if weight is None else y * weight[:, None]
    y = y if bias is None else y + bias[:, None]
    y = (y.relu() if settings.rectified else y) * (counts * settings.scale)
    return Normalized(y.reshape(x.shape), mean.detach(), variance.detach())


def normalize_product(
    rows: Float[Tensor, "*steps features"],
    matrix: Float[Tensor, "channels features"],
    shift: Each,
    mask: Bool[Tensor, "*steps"] | None,
    weight: Each | None,
    bias: Each | None,
    settings: Settings,
) -> Normalized:
    """`normalize` of `rows` times the transpose of `matrix` plus `shift`, with less time between the two.

    The mean takes the shift away again, so it is only added to the mean that is returned. Its gradient is 0
    rather than a rounding error, out of which Adam would make steps of full size.
    """
    bias = 0 * shift if bias is None else torch.add(bias, shift, alpha=0)  # every parameter has a gradient
    y, mean, variance = normalize(torch_F.linear(rows, matrix), mask, weight, bias, settings)
    return Normalized(y, mean + shift.detach(), variance)
