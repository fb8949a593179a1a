"""Path transforms as modules, to stand in front of a layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from jaxtyping import Bool, Float
from torch import Tensor, nn

from seq2tens import functional as F


class Difference(nn.Module):
    """Increments from the base point 0, see `functional.difference`."""

    def forward(
        self,
        x: Float[Tensor, "batch time channels"],
        mask: Bool[Tensor, "batch time"] | None = None,
        lengths: Tensor | None = None,
    ) -> Tensor:
        """Same shape as `x`."""
        return F.difference(x, mask=mask, lengths=lengths)


class TimeEmbedding(nn.Module):
    """A time coordinate before the channels, see `functional.time_embedding`."""

    def __init__(self, mode: Literal["index", "centred"] = "index") -> None:
        super().__init__()
        self.mode = mode

    def forward(
        self,
        x: Float[Tensor, "batch time channels"],
        mask: Bool[Tensor, "batch time"] | None = None,
        lengths: Tensor | None = None,
        times: Float[Tensor, "batch time"] | None = None,
    ) -> Tensor:
        """One channel more than `x`."""
        return F.time_embedding(x, times, mode=self.mode, mask=mask, lengths=lengths)


class Lags(nn.Module):
    """Earlier values beside each value, see `functional.lags`."""

    def __init__(self, steps: int | Sequence[int]) -> None:
        super().__init__()
        self.steps = steps

    def forward(
        self,
        x: Float[Tensor, "batch time channels"],
        mask: Bool[Tensor, "batch time"] | None = None,
        lengths: Tensor | None = None,
    ) -> Tensor:
        """As many times the channels of `x` as there are lags."""
        return F.lags(x, self.steps, mask=mask, lengths=lengths)
