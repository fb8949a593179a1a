"""Convolution over time: torch's `conv1d`, with the channels last."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as torch_F


def prepare(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    """Return the function x → `convolve(x, weight, bias)`."""
    return lambda x: convolve(x, weight, bias)


def convolve(x: Tensor, weight: Tensor, bias: Tensor | None, train_bias: bool = True) -> Tensor:
    """Convolve without padding; see `ops.convolution.convolve`."""
    if bias is not None and not train_bias:
        bias = torch.add(bias.detach(), bias, alpha=0)  # so that its gradient is 0 rather than None
    return torch_F.conv1d(x.mT, weight, bias).mT
