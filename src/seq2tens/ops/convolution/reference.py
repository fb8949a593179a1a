"""Convolution over time: torch's `conv1d`, with the channels last."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as torch_F


def convolve(x: Tensor, weight: Tensor, bias: Tensor | None, train_bias: bool = True) -> Tensor:
    """Convolve without padding; see `ops.convolution.convolve`."""
    if bias is not None and not train_bias:
        bias = torch.add(bias.detach(), bias, alpha=0)  # so that its gradient is 0 rather than None
    return torch_F.conv1d(x.mT, weight, bias).mT
