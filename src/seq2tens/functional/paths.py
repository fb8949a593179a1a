"""Path transforms: transformations of a sequence before the map is applied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from seq2tens import _checks as check
from seq2tens.ops.difference import difference as neighbor_difference

Series = Float[Tensor, "batch time channels"]
Mask = Bool[Tensor, "batch time"]
Lengths = check.Lengths


def difference(x: Series, *, mask: Mask | None = None, lengths: Lengths | None = None) -> Series:
    """Return the increments (x_1, x_2 - x_1, …) from the base point 0; the length stays the same.

    With a mask the increments are those between valid steps; other steps become 0.
    """
    mask = _valid_steps(x, mask, lengths)
    if mask is None:
        return neighbor_difference(x)
    x = torch.where(mask[..., None], x, 0.0)
    return torch.where(mask[..., None], x - _earlier(x, mask, 1), 0.0)


def time_embedding(
    x: Series,
    times: Float[Tensor, "batch time"] | None = None,
    *,
    mode: Literal["index", "centred"] = "index",
    mask: Mask | None = None,
    lengths: Lengths | None = None,
) -> Float[Tensor, "batch time channels+1"]:
    """Prepend a time coordinate to the channels.

    It is `times` if given. Otherwise it is i/L for the i-th of L steps (`"index"`), or runs from -1 to 1
    (`"centred"`; a single step is at 0). Only valid steps are counted; the others get 0.
    """
    check.choice("mode", mode, ("index", "centred"))
    mask = _valid_steps(x, mask, lengths)
    if times is not None:
        check.floating("times", times)
        check.shape("times", times, tuple(x.shape[:2]), "(batch, time)")
        time = times.to(x.dtype)
        time = time if mask is None else torch.where(mask, time, 0.0)
    else:
        time = relative_time(x, mask, mode)
    return torch.cat([time[..., None], x], dim=2)


def relative_time(
    x: Series, mask: Mask | None, mode: Literal["index", "centred"]
) -> Float[Tensor, "batch time"]:
    """Return the time coordinate of each step, see `time_embedding`."""
    time = clock(*_position(x, mask), mode)
    return time if mask is None else torch.where(mask, time, 0.0)


def clock(
    index: Float[Tensor, "batch time"], total: Float[Tensor, "batch 1"], mode: Literal["index", "centred"]
) -> Float[Tensor, "batch time"]:
    """Return the time of step `index` of `total`: their ratio, or from -1 to 1 if `"centred"`."""
    if mode == "index":
        return index / total.clamp(min=1)
    return torch.where(total > 1, 2 * (index - 1) / (total - 1).clamp(min=1) - 1, 0.0)


def lags(
    x: Series, steps: int | Sequence[int], *, mask: Mask | None = None, lengths: Lengths | None = None
) -> Float[Tensor, "batch time lagged"]:
    """Append earlier values as channels: lags 0, …, `steps`, or exactly those listed.

    Before the first step the value is 0. Lags are counted in valid steps; other steps become 0.
    """
    offsets = list(range(steps + 1)) if isinstance(steps, int) else list(steps)
    check.require(
        len(offsets) > 0 and min(offsets) >= 0, f"`steps` must be lags of at least 0, got {steps!r}"
    )
    mask = _valid_steps(x, mask, lengths)
    if mask is None:
        mask = x.new_ones(x.shape[:2], dtype=torch.bool)
    x = torch.where(mask[..., None], x, 0.0)
    shifted = [x if offset == 0 else _earlier(x, mask, offset) for offset in offsets]
    return torch.where(mask[..., None], torch.cat(shifted, dim=2), 0.0)


def basepoint(
    x: Series, *, mask: Mask | None = None, lengths: Lengths | None = None
) -> Tensor | tuple[Tensor, Tensor]:
    """Prepend a step of zeros to every sequence. With a mask or lengths, return (path, mask)."""
    mask = _valid_steps(x, mask, lengths)
    path = torch.cat([torch.zeros_like(x[:, :1]), x], dim=1)
    if mask is None:
        return path
    return path, torch.cat([torch.ones_like(mask[:, :1]), mask], dim=1)


def lead_lag(
    x: Series, *, mask: Mask | None = None, lengths: Lengths | None = None
) -> Tensor | tuple[Tensor, Tensor]:
    """Return (x_1,x_1), (x_2,x_1), (x_2,x_2), (x_3,x_2), …: a leading and a lagging copy, 2L - 1 steps.

    With a mask or lengths, return (path, mask). Counted from 0, step 2i of the path is step i of `x`. The
    move to it, step 2i - 1, is valid if step i is valid and not the first valid one.
    """
    mask = _valid_steps(x, mask, lengths)
    counted = x.new_ones(x.shape[:2], dtype=torch.bool) if mask is None else mask
    x = torch.where(counted[..., None], x, 0.0)
    stay = torch.cat([x, x], dim=2)
    move = torch.cat([x, _earlier(x, counted, 1)], dim=2)
    path = torch.stack([move, stay], dim=2).flatten(1, 2)[:, 1:]
    if mask is None:
        return path
    moves = mask & (mask.cumsum(1) > 1)
    return path, torch.stack([moves, mask], dim=2).flatten(1, 2)[:, 1:]


def forward_fill(
    x: Series,
    *,
    observed: Bool[Tensor, "batch time channels"] | None = None,
    mask: Mask | None = None,
    lengths: Lengths | None = None,
    initial: float | Float[Tensor, " channels"] = 0.0,
) -> Series:
    """Carry the last observed value of each channel forward; entries before the first one are `initial`.

    An entry is missing where `observed` is False or, without `observed`, where it is NaN. Masked steps are
    never the source of a value; they are filled like missing ones.
    """
    mask = _valid_steps(x, mask, lengths)
    if observed is None:
        observed = ~x.isnan()
    check.shape("observed", observed, tuple(x.shape), "(batch, time, channels)")
    if mask is not None:
        observed = observed & mask[..., None]
    filled = torch.where(observed, x, torch.as_tensor(initial, dtype=x.dtype, device=x.device))
    known, reach = observed, 1
    while reach < x.shape[1]:  # values observed less than `reach` steps ago have been carried forward
        carried = torch.where(known[:, reach:], filled[:, reach:], filled[:, :-reach])
        filled = torch.cat([filled[:, :reach], carried], dim=1)
        known = torch.cat([known[:, :reach], known[:, reach:] | known[:, :-reach]], dim=1)
        reach *= 2
    return filled


def _valid_steps(x: Tensor, mask: Tensor | None, lengths: Lengths | None) -> Tensor | None:
    check.sequences("x", x)
    check.not_empty("x", x)
    return check.step_mask(x, mask, lengths)


def _position(x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the rank of each step among the valid steps, and the number of valid steps."""
    if mask is not None:
        index = mask.cumsum(1).to(x.dtype)
        return index, index[:, -1:]
    index = torch.arange(1, x.shape[1] + 1, device=x.device, dtype=x.dtype).expand(x.shape[:2])
    return index, index.new_full((x.shape[0], 1), x.shape[1])


def _earlier(x: Tensor, mask: Tensor, offset: int) -> Tensor:
    """Return the value `offset` valid steps before each valid step, 0 if there is none."""
    rank = mask.cumsum(1)
    # position of the k-th valid step; invalid steps write to a spare last slot
    slots = torch.where(mask, rank - 1, x.shape[1])
    steps = torch.arange(x.shape[1], device=x.device).expand_as(slots)
    position = x.new_zeros((x.shape[0], x.shape[1] + 1), dtype=torch.long).scatter(1, slots, steps)
    source = rank - 1 - offset
    index = position.gather(1, source.clamp(min=0))
    values = x.gather(1, index[..., None].expand_as(x))
    return torch.where((source >= 0)[..., None], values, 0.0)
