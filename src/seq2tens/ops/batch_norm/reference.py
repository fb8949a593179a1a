"""Batch normalisation over the valid rows: the definition, in operations of torch."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Values = Float[Tensor, "*rows_channels_inner"]
PerChannel = Float[Tensor, " channels"]


class Running(NamedTuple):
    """Running statistics, updated in place; `momentum` is the weight of the newest batch."""

    mean: PerChannel
    variance: PerChannel
    momentum: float

    def follow(self, mean: PerChannel, variance: PerChannel) -> None:
        """Move towards the statistics of a batch."""
        self.mean.lerp_(mean.detach().to(self.mean.dtype), self.momentum)
        self.variance.lerp_(variance.detach().to(self.variance.dtype), self.momentum)


class Settings(NamedTuple):
    """Options of the normalisation.

    `eps` is added to variances. Channels are the last axis or, if `inner` is the size of the last axis, the
    one before it.
    """

    eps: float
    inner: int | None = None

    def channels(self, shape: torch.Size) -> int:
        """Return the number of channels of values of this shape."""
        return shape[-1] if self.inner is None else shape[-2]


def batch_norm(
    x: Values,
    mask: Bool[Tensor, "*rows"] | None,
    weight: PerChannel | None,
    bias: PerChannel | None,
    running: Running | None,
    settings: Settings,
) -> Values:
    """Normalise each channel with mean and variance of the rows where `mask` is True; the others become 0.

    Masked rows must be finite, too.
    """
    rows = x.reshape(-1, settings.channels(x.shape), settings.inner or 1)
    counts = x.new_ones(rows.shape[0], 1, 1) if mask is None else mask.to(x.dtype).reshape(-1, 1, 1)
    total = counts.sum().clamp(min=1) * rows.shape[2]
    mean = (counts * rows).sum((0, 2)) / total
    centered = rows - mean[:, None]
    variance = (counts * centered.square()).sum((0, 2)) / total
    y = centered * (variance + settings.eps).rsqrt()[:, None]
    y = y if weight is None else y * weight[:, None]
    y = y if bias is None else y + bias[:, None]
    if running is not None:
        with torch.no_grad():
            running.follow(mean, variance)
    return (y * counts).reshape(x.shape)
