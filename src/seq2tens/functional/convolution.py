"""Convolution over time, axes `(batch, time, channels)`."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from seq2tens.ops.convolution import convolve

__all__ = ["convolve", "convolve_few", "flat_kernel", "reach"]


def reach(kernel: int) -> tuple[int, int]:
    """Return how many steps a centred kernel covers before and after a step; an even one, one more after."""
    return (kernel - 1) // 2, kernel // 2


def flat_kernel(
    weight: Float[Tensor, "out_features in_features kernel"],
) -> Float[Tensor, "kernel*in_features out_features"]:
    """Return the kernel as a matrix, by which the values that it covers, side by side, are multiplied."""
    return weight.permute(2, 1, 0).flatten(0, 1).contiguous()


def convolve_few(
    x: Float[Tensor, "batch time in_features"],
    kernel: Float[Tensor, "kernel*in_features out_features"],
    bias: Float[Tensor, " out_features"],
) -> Float[Tensor, "batch time-kernel+1 out_features"]:
    """Convolve a few steps with a `flat_kernel`, without gradients.

    For few steps, rearranging the weights in every call, as `convolve` does, would take longer.
    """
    batch, time, channels = x.shape
    places = time - len(kernel) // channels + 1
    strides = (time * channels, channels, 1)
    seen = x.contiguous().as_strided((batch, places, len(kernel)), strides).reshape(-1, len(kernel))
    return torch.addmm(bias, seen, kernel).view(batch, places, len(bias))
