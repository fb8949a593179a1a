"""Levels of free tensors as plain tensors: products over their axes, and checks."""

from __future__ import annotations

import torch
from torch import Tensor

from seq2tens._checks import floating, require, shape


def outer(s: Tensor, t: Tensor, s_degree: int, t_degree: int) -> Tensor:
    """Return s ⊗ t over the tensor axes, elementwise over the batch axes before them."""
    cut = t.dim() - t_degree
    left = s.reshape(s.shape + (1,) * t_degree)
    return left * t.reshape(t.shape[:cut] + (1,) * s_degree + t.shape[cut:])


def prefix_products(vectors: Tensor) -> list[Tensor]:
    """Return 1, z_1, z_1 ⊗ z_2, … for the vectors z along the last axis but one."""
    floating("vectors", vectors)
    require(
        vectors.dim() >= 2 and vectors.shape[-2] > 0,
        f"`vectors` must have shape (*batch, order, dim) with order at least 1, got {tuple(vectors.shape)}",
    )
    levels = [torch.ones(vectors.shape[:-2], dtype=vectors.dtype, device=vectors.device)]
    for m, vector in enumerate(vectors.unbind(-2)):
        levels.append(outer(levels[-1], vector, m, 1))
    return levels


def check_levels(levels: tuple[Tensor, ...]) -> None:
    """Require levels 0, 1, … of one element, with the same dtype and on the same device."""
    require(len(levels) >= 2, f"`levels` must hold at least degrees 0 and 1, got {len(levels)} level(s)")
    for m, level in enumerate(levels):
        floating(f"levels[{m}]", level)
    batch, first = tuple(levels[0].shape), levels[1]
    require(
        first.dim() == len(batch) + 1,
        f"`levels[1]` must have shape (*{batch}, dim), got {tuple(first.shape)}",
    )
    for m, level in enumerate(levels):
        shape(f"levels[{m}]", level, batch + (first.shape[-1],) * m, f"(*batch, {m} axes of size dim)")
        same = level.dtype == first.dtype and level.device == first.device
        require(same, f"`levels` must share one dtype and device, got {level.dtype} and {first.dtype}")


def broadcast(names: str, left: torch.Size, right: torch.Size) -> None:
    """Require batch shapes that broadcast."""
    for a, b in zip(reversed(left), reversed(right), strict=False):
        require(
            a == b or 1 in (a, b),
            f"the batch shapes of {names} must broadcast, got {tuple(left)} and {tuple(right)}",
        )
