"""Selection of observed entries to hide in training, so that a network learns to predict them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from seq2tens._checks import ArgumentError, require

Pattern = Literal["points", "blocks", "channels", "mixed"]
Hide = Pattern | Sequence[int]
Observed = Bool[Tensor, "batch time channels"]
# Range of the fraction of observed entries that is hidden in a sequence.
LEAST, MOST = 0.05, 0.6
# With "mixed", the fraction of sequences with hidden blocks and with hidden channels; all others have points.
BLOCKS, CHANNELS = 0.15, 0.1


def check_hide(hide: Hide, channels: int) -> None:
    """Require a pattern, or a list of channels."""
    if isinstance(hide, str):
        known = ", ".join(map(repr, get_args(Pattern)))
        require(
            hide in get_args(Pattern), f"`hide` must be one of {known} or a list of channels, got {hide!r}"
        )
        return
    numbers = all(isinstance(c, int) and 0 <= c < channels for c in hide)
    if len(hide) == 0 or not numbers:
        raise ArgumentError(f"`hide` must list channels from 0 to {channels - 1}, got {list(hide)}")


def hidden_entries(observed: Observed, hide: Hide) -> Observed:
    """Draw entries to hide from torch's global generator.

    Each sequence has its own rate. `"points"`: independent entries; `"blocks"`: intervals of time in some of
    the channels; `"channels"`: whole channels; `"mixed"`: one of these for each sequence, mostly points. A
    list of channels: points in these channels only.
    """
    rate = LEAST + (MOST - LEAST) * torch.rand(len(observed), 1, 1, device=observed.device)
    if not isinstance(hide, str):
        chosen = torch.zeros(observed.shape[2], dtype=torch.bool, device=observed.device)
        chosen[list(hide)] = True
        return _points(observed, rate) & chosen
    if hide != "mixed":
        return {"points": _points, "blocks": _blocks, "channels": _channels}[hide](observed, rate)
    kind = torch.rand(len(observed), 1, 1, device=observed.device)
    structured = torch.where(kind < BLOCKS, _blocks(observed, rate), _channels(observed, rate))
    return torch.where(kind < BLOCKS + CHANNELS, structured, _points(observed, rate))


def _points(observed: Observed, rate: Float[Tensor, "batch 1 1"]) -> Observed:
    return observed & (torch.rand(observed.shape, device=observed.device) < rate)


def _channels(observed: Observed, rate: Float[Tensor, "batch 1 1"]) -> Observed:
    batch, _, channels = observed.shape
    return observed & (torch.rand(batch, 1, channels, device=observed.device) < rate)


def _blocks(observed: Observed, rate: Float[Tensor, "batch 1 1"]) -> Observed:
    """Hide one interval that covers this fraction of the time, in half of the channels."""
    batch, time, channels = observed.shape
    draws = torch.rand(2, batch, 1, channels, device=observed.device)
    length = (rate * time).ceil()
    start = (draws[0] * (time - length + 1)).floor()
    steps = torch.arange(time, device=observed.device)[:, None]
    return observed & (steps >= start) & (steps < start + length) & (draws[1] < 0.5)
