"""Convolution over time: torch's `conv1d`, with the channels last."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as torch_F


class Convolution(NamedTuple):
    """Arguments of a convolution, see `ops.convolution.convolve`."""

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    mask: Tensor | None = None
    padding: tuple[int, int] = (0, 0)
    train_bias: bool = True


def convolve(call: Convolution) -> Tensor:
    """Pad, then convolve."""
    x, weight, bias, mask, padding, train_bias = call
    if bias is not None and not train_bias:
        bias = torch.add(bias.detach(), bias, alpha=0)  # so that its gradient is 0 rather than None
    if mask is not None:
        x = x * mask[..., None]
    if any(padding):
        x = torch_F.pad(x, (0, 0, *padding))
    return torch_F.conv1d(x.mT, weight, bias).mT


def prepare(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    """Return the function x → `convolve` without padding."""
    return lambda x: convolve(Convolution(x, weight, bias))
