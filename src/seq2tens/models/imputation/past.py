"""Features of each channel from earlier steps, one row per step."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

# Number of features of a channel at a step, see `look_back`.
FEATURES = 6


class Past(NamedTuple):
    """The state that later steps need.

    It holds the last value of each channel and its time, the sum and number of its values, and the time of
    the last step.
    """

    value: Float[Tensor, "batch channels"]
    time: Float[Tensor, "batch channels"]
    total: Float[Tensor, "batch channels"]
    number: Float[Tensor, "batch channels"]
    clock: Float[Tensor, " batch"]

    @classmethod
    def before(cls, values: Float[Tensor, "batch time channels"], start: Float[Tensor, " batch"]) -> Past:
        """Return the state before the first step, from which time is counted until a channel is observed."""
        zeros = torch.zeros_like(values[:, 0])
        return cls(zeros, start[:, None].expand_as(zeros), zeros, zeros, start)


def look_back(
    values: Float[Tensor, "batch time channels"],
    observed: Bool[Tensor, "batch time channels"],
    times: Float[Tensor, "batch time"],
    past: Past | None = None,
    *,
    own: bool = True,
) -> tuple[Float[Tensor, "batch time features"], Past]:
    """Return the features of every step, and the state for later steps.

    There are six for each channel, feature by feature: the value, or the last one before it; whether it was
    observed; log(1 + the time since the last one); whether there is one; the mean of the earlier values,
    shrunk towards 0; log(1 + their number). Then log(1 + the time since the previous step). Without `own`,
    the first is the last value before, even where a value was observed. Times may decrease as well as
    increase, so that the same function looks ahead along reversed sequences.
    """
    past = Past.before(values, times[:, 0]) if past is None else past
    index, moments = _last_before(observed), times[..., None].expand_as(values)
    inside = index >= 0
    last = torch.where(inside, values.gather(1, index.clamp(min=0)), past.value[:, None])
    moment = torch.where(inside, moments.gather(1, index.clamp(min=0)), past.time[:, None])
    known = torch.where(observed, values, 0.0)
    totals, counts = (t.cumsum(1) for t in (known, observed.to(values.dtype)))
    total, count = (
        totals - known + past.total[:, None],
        counts - observed.to(values.dtype) + past.number[:, None],
    )
    steps = torch.cat([past.clock[:, None], times], dim=1).diff(dim=1).abs()
    features = torch.cat(
        [
            torch.where(observed, values, last) if own else last,
            observed.to(values.dtype),
            (moments - moment).abs().log1p(),
            (count > 0).to(values.dtype),
            total / (count + 1),
            count.log1p(),
            steps.log1p()[..., None],
        ],
        dim=2,
    )
    return features, Past(
        torch.where(observed, values, last)[:, -1],
        torch.where(observed, moments, moment)[:, -1],
        past.total + totals[:, -1],
        past.number + counts[:, -1],
        times[:, -1],
    )


def _last_before(observed: Bool[Tensor, "batch time channels"]) -> Tensor:
    """Return the last step before each step at which a channel was observed, -1 if there is none."""
    steps = torch.arange(observed.shape[1], device=observed.device)[:, None]
    last = torch.where(observed, steps, -1).cummax(dim=1).values
    return torch.cat([torch.full_like(last[:, :1], -1), last[:, :-1]], dim=1)
