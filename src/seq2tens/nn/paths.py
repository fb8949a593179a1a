"""Path transforms as modules, to be placed before a layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens import functional as F
from seq2tens.nn.alignment import Mask, Series
from seq2tens.nn.context import Whole


class Difference(nn.Module):
    """Increments of a sequence that starts from the base point 0, see `functional.difference`."""

    def forward(
        self,
        x: Series,
        mask: Mask | None = None,
        lengths: check.Lengths | None = None,
        *,
        context: Whole | None = None,
    ) -> Tensor:
        """Return the increments, in the shape of `x`."""
        if context is None:
            return F.difference(x, mask=mask, lengths=lengths)
        return context.difference(x)


class TimeEmbedding(nn.Module):
    """Prepend a time coordinate to the channels, see `functional.time_embedding`."""

    def __init__(self, mode: Literal["index", "centred"] = "index") -> None:
        super().__init__()
        self.mode = mode

    def forward(
        self,
        x: Series,
        mask: Mask | None = None,
        lengths: check.Lengths | None = None,
        times: Float[Tensor, "batch time"] | None = None,
        *,
        context: Whole | None = None,
    ) -> Tensor:
        """Return `x` with one more channel, which comes first."""
        if context is None:
            return F.time_embedding(x, times, mode=self.mode, mask=mask, lengths=lengths)
        return torch.cat([context.clock(x, self.mode), x], dim=2)


class Lags(nn.Module):
    """Append earlier values as channels, see `functional.lags`."""

    def __init__(self, steps: int | Sequence[int]) -> None:
        super().__init__()
        self.steps = steps

    def forward(
        self,
        x: Series,
        mask: Mask | None = None,
        lengths: check.Lengths | None = None,
        *,
        context: Whole | None = None,
    ) -> Tensor:
        """Return the channels of `x` at every lag, side by side."""
        if context is None:
            return F.lags(x, self.steps, mask=mask, lengths=lengths)
        offsets = range(self.steps + 1) if isinstance(self.steps, int) else self.steps
        longest, time = max(offsets), x.shape[1]
        extended = context.halo(x, longest, 0)
        return torch.cat([extended[:, longest - n : longest - n + time] for n in offsets], dim=2)
