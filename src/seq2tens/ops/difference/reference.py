"""Differences of adjacent steps: the definition, in operations of torch."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as torch_F


def difference(x: Tensor, reverse: bool) -> Tensor:
    """Subtract the neighbour of each step; see `ops.difference.difference`."""
    return x - torch_F.pad(x, (0, 0, -1, 1) if reverse else (0, 0, 1, -1))
