"""Blocks of pooled convolutions and functionals in operations of torch: the definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from seq2tens.ops.pooling import Blocks

CONTEST_STEEPNESS = 8.0


def pool_blocks(paths: Tensor, lengths: Tensor, blocks: Blocks, groups: int, steepness: float) -> Tensor:
    """Convolve, run the functionals and pool, block by block; see `ops.pooling.pool_blocks`."""
    valid = torch.where(inside(paths[0], lengths), paths, 0.0)
    pooled = []
    for source, channels, dilation, taps, picks, gains, decay, threshold in zip(*blocks, strict=True):
        comparison = Comparison(threshold, groups, steepness)
        responses = _convolve(valid[int(source)][..., channels], taps, int(dilation))
        paths_of_block = (responses, functionals(responses, picks, gains, decay))
        pooled.append(pool_paths(*paths_of_block, lengths, comparison))
    return torch.stack(pooled, dim=1)


def _convolve(x: Tensor, taps: Tensor, dilation: int) -> Tensor:
    """Apply convolutions, centred at each step, with zero padding."""
    reach = dilation * (len(taps) - 1)
    padded = torch.nn.functional.pad(x, (0, 0, reach - reach // 2, reach // 2)).double()
    weight = taps.permute(2, 1, 0).double()
    return torch.nn.functional.conv1d(padded.mT, weight, dilation=dilation).mT.to(x.dtype)


def functionals(responses: Tensor, picks: Tensor, gains: Tensor, decay: Tensor) -> Tensor:
    """Return all levels, axes `(batch, time, level, width)`.

    Level m decays by the m-th power of the decay, and grows by level m - 1 times what it picks.
    """
    factors = responses[..., picks] * gains
    powers = decay.double() ** torch.arange(1, len(picks) + 1, device=decay.device)[:, None]
    state, path = torch.zeros_like(factors[:, 0]).double(), []
    for step in factors.unbind(1):
        faded = state * powers
        state = faded + torch.cat([torch.ones_like(faded[:, :1]), faded[:, :-1]], dim=1) * step
        path.append(state)
    return torch.stack(path, dim=1).to(responses.dtype)


def pool_path(path: Tensor, lengths: Tensor, threshold: Tensor, steepness: float) -> tuple[Tensor, ...]:
    """Return mean, longest run near 1 and mean absolute change of a ramp from 0 to 1 around the threshold."""
    ramp = ((path - threshold) * steepness + 0.5).clamp(0, 1)
    ramp = torch.where(inside(path, lengths), ramp, 0.0)
    change = torch.where(inside(path, lengths), ramp.diff(dim=1, prepend=ramp[:, :1]).abs(), 0.0)
    return _mean(ramp, lengths), _longest_stretch(ramp) / lengths[:, None], _mean(change, lengths)


class Comparison(NamedTuple):
    """What the columns of a path are compared with: thresholds, by ramps, and each other, in groups."""

    threshold: Tensor
    groups: int
    steepness: float


def pool_paths(
    responses: Tensor,
    levels: Tensor,
    lengths: Tensor,
    comparison: Comparison,
    pool_path: Callable[..., tuple[Tensor, ...]] = pool_path,
) -> Tensor:
    """Pool convolutions and levels over time; the result has axes `(batch, pools, width)`."""
    threshold, groups, steepness = comparison
    pools = [*pool_path(responses, lengths, threshold, steepness), *pool_contest(responses, lengths, groups)]
    pools += [_mean((level * steepness + 0.5).clamp(0, 1), lengths) for level in levels.unbind(2)[1:]]
    pools += [_mean(level.square(), lengths) for level in levels.unbind(2)]
    return torch.stack(pools, dim=1)


def _longest_stretch(ramp: Tensor) -> Tensor:
    """Return the maximum of r_i = ramp_i (r_(i-1) + 1): the longest run of ones if the ramp is 0 or 1."""
    run = longest = torch.zeros_like(ramp[:, 0])
    for step in ramp.unbind(1):
        run = (run + 1) * step
        longest = torch.maximum(longest, run)
    return longest


def pool_contest(path: Tensor, lengths: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """Return means of two ramps that fall from 1 at the highest and the lowest of a group to 0.

    The first ramp is multiplied by the highest value. Column k belongs to group k mod `groups`.
    """
    rivals = path.unflatten(2, (-1, groups))
    top, bottom = rivals.amax(2, keepdim=True), rivals.amin(2, keepdim=True)
    wins = (1 - (top - rivals) * CONTEST_STEEPNESS).clamp(min=0) * top
    losses = (1 - (rivals - bottom) * CONTEST_STEEPNESS).clamp(min=0)
    return _mean(wins.flatten(2), lengths), _mean(losses.flatten(2), lengths)


def inside(path: Tensor, lengths: Tensor) -> Tensor:
    """Return which steps are valid, with an axis for the columns."""
    steps = torch.arange(path.shape[1], device=path.device)
    return (steps < lengths[:, None])[..., None]


def _mean(values: Tensor, lengths: Tensor) -> Tensor:
    """Return the mean over the first `lengths` steps."""
    return torch.where(inside(values, lengths), values, 0.0).sum(1) / lengths[:, None]
