"""Convolution over time: torch's own, with the channels last."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as torch_F


def convolve(x: Tensor, weight: Tensor, bias: Tensor | None, train_bias: bool = True) -> Tensor:
    """A step for each place where the kernel fits."""
    if bias is not None and not train_bias:
        bias = torch.add(bias.detach(), bias, alpha=0)  # it has a gradient all the same
    return torch_F.conv1d(x.mT, weight, bias).mT
