"""Convolution over time, axes `(batch, time, channels)`."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as torch_F


def reach(kernel: int) -> tuple[int, int]:
    """How many steps a centred kernel sees before and after a step; an even one sees one more after it."""
    return (kernel - 1) // 2, kernel // 2


def convolve(
    x: Float[Tensor, "batch time in_features"],
    weight: Float[Tensor, "out_features in_features kernel"],
    bias: Float[Tensor, " out_features"] | None = None,
) -> Float[Tensor, "batch time-kernel+1 out_features"]:
    """Convolve without padding: a step for each place where the kernel fits."""
    if _lacks_products(x):
        return torch_F.conv1d(x.mT, weight, bias).mT
    kernel = weight.shape[2]
    if kernel == 1:
        return torch_F.linear(x, weight.squeeze(2), bias)
    # In this layout one product is faster than `conv1d` on short sequences and as fast on long ones.
    return torch_F.linear(_neighbours(x, kernel), weight.mT.flatten(1), bias)


def _neighbours(x: Tensor, kernel: int) -> Float[Tensor, "batch places seen"]:
    """The values that a kernel sees at each of its places, side by side."""
    batch, steps, channels = x.shape
    time = steps - kernel + 1
    only_run = not torch.compiler.is_compiling() and torch.is_inference_mode_enabled()
    if only_run and x.is_contiguous():  # they lie one after the other in memory
        return x.as_strided((batch, time, kernel * channels), (steps * channels, channels, 1))
    return torch.cat([x[:, i : i + time] for i in range(kernel)], dim=2)


def _lacks_products(x: Tensor) -> bool:
    """Whether matrix products are not to be had for this dtype on every processor."""
    autocast = not x.is_meta and torch.is_autocast_enabled(x.device.type)  # which the meta device has not
    return x.dtype.itemsize < 4 or autocast
