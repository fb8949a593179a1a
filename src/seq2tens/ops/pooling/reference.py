"""Pooling in operations of torch: the definition."""

from __future__ import annotations

import torch
from torch import Tensor


def pool_path(path: Tensor, lengths: Tensor, threshold: Tensor, steepness: float) -> tuple[Tensor, ...]:
    """Return mean, longest run near 1 and mean absolute change of a ramp from 0 to 1 around the threshold."""
    ramp = ((path - threshold) * steepness + 0.5).clamp(0, 1)
    ramp = torch.where(_inside(path, lengths), ramp, 0.0)
    change = torch.where(_inside(path, lengths), ramp.diff(dim=1, prepend=ramp[:, :1]).abs(), 0.0)
    return _mean(ramp, lengths), _longest_stretch(ramp) / lengths[:, None], _mean(change, lengths)


def _longest_stretch(ramp: Tensor) -> Tensor:
    """Return the maximum of r_i = ramp_i (r_(i-1) + 1): the longest run of ones if the ramp is 0 or 1."""
    run = longest = torch.zeros_like(ramp[:, 0])
    for step in ramp.unbind(1):
        run = (run + 1) * step
        longest = torch.maximum(longest, run)
    return longest


def pool_contest(path: Tensor, lengths: Tensor, groups: int, steepness: float) -> tuple[Tensor, ...]:
    """Return means of two ramps that fall from 1 at the highest and the lowest of a group to 0.

    The first ramp is multiplied by the highest value.
    """
    rivals = path.unflatten(2, (-1, groups))
    top, bottom = rivals.amax(2, keepdim=True), rivals.amin(2, keepdim=True)
    wins = (1 - (top - rivals) * steepness).clamp(min=0) * top
    losses = (1 - (rivals - bottom) * steepness).clamp(min=0)
    return _mean(wins.flatten(2), lengths), _mean(losses.flatten(2), lengths)


def _inside(path: Tensor, lengths: Tensor) -> Tensor:
    steps = torch.arange(path.shape[1], device=path.device)
    return (steps < lengths[:, None])[..., None]


def _mean(values: Tensor, lengths: Tensor) -> Tensor:
    """Return the mean over the first `lengths` steps."""
    return torch.where(_inside(values, lengths), values, 0.0).sum(1) / lengths[:, None]
