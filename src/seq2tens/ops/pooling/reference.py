"""The pools in operations of torch: the definition."""

from __future__ import annotations

import torch
from torch import Tensor


def pool_path(path: Tensor, lengths: Tensor, threshold: Tensor, steepness: float) -> tuple[Tensor, Tensor]:
    """Mean of a ramp from 0 to 1 around the threshold, and maximum, over the steps of every sequence."""
    ramp = ((path - threshold) * steepness + 0.5).clamp(0, 1)
    peak = torch.where(_inside(path, lengths), path, -torch.inf).amax(1)
    return _mean(ramp, lengths), peak


def pool_contest(path: Tensor, lengths: Tensor, groups: int, steepness: float) -> tuple[Tensor, Tensor]:
    """Means of two ramps, from 1 at the highest and lowest of a group to 0; the first times the highest."""
    rivals = path.unflatten(2, (-1, groups))
    top, bottom = rivals.amax(2, keepdim=True), rivals.amin(2, keepdim=True)
    wins = (1 - (top - rivals) * steepness).clamp(min=0) * top
    losses = (1 - (rivals - bottom) * steepness).clamp(min=0)
    return _mean(wins.flatten(2), lengths), _mean(losses.flatten(2), lengths)


def _inside(path: Tensor, lengths: Tensor) -> Tensor:
    steps = torch.arange(path.shape[1], device=path.device)
    return (steps < lengths[:, None])[..., None]


def _mean(values: Tensor, lengths: Tensor) -> Tensor:
    """Mean over the steps that count."""
    return torch.where(_inside(values, lengths), values, 0.0).sum(1) / lengths[:, None]
