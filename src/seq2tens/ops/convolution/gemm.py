"""Convolution of few steps as one matrix product, without gradients.

The kernels of `csrc/convolution.cpp` rearrange the weights in every call, which takes longer than the
convolution of one step. Here the weights are already laid out as the matrix of the product.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seq2tens.ops.dispatch import may_be_differentiated


def taps_first(weight: Tensor) -> Tensor:
    """Return the same weights, laid out in memory in the order kernel, in_features, out_features."""
    return weight.permute(2, 1, 0).contiguous().permute(2, 1, 0)


def unsupported(x: Tensor, weight: Tensor, bias: Tensor | None, train_bias: bool = True) -> str | None:
    """Return why these arguments cannot be one matrix product; None if they can."""
    if weight.dim() != 3 or weight.is_contiguous() or not weight.permute(2, 1, 0).is_contiguous():
        return "the weights are not laid out by `taps_first`"
    if x.dim() != 3 or x.shape[2] != weight.shape[1] or x.shape[1] < weight.shape[2]:
        return "the shapes do not match, or the result would be empty"
    return "it has no derivatives" if may_be_differentiated(x, weight, bias) else None


def convolve(x: Tensor, weight: Tensor, bias: Tensor | None, train_bias: bool = True) -> Tensor:
    """Same signature and meaning as `reference.convolve`."""
    out_features, channels, taps = weight.shape
    matrix = weight.permute(2, 1, 0).reshape(-1, out_features)
    batch, time, _ = x.shape
    places = time - taps + 1
    strides = (time * channels, channels, 1)
    seen = x.contiguous().as_strided((batch, places, len(matrix)), strides).reshape(-1, len(matrix))
    y = seen @ matrix if bias is None else torch.addmm(bias, seen, matrix)
    return y.view(batch, places, out_features)
