"""What a push is made of: which positions are looked at, and which of them can still change.

A convolution looks ahead, so its output at the last positions depends on where the sequence ends: zeros
stand beyond. Every node therefore works on windows. A push asks for outputs at some ends, `stride` steps
apart; the window of an end holds the last positions before it. The first `stride` of them have become final
since the end before, those after them are provisional: they belong to this end alone. A node that looks
`ahead` has so many more provisional positions in its windows. Positions before the first step hold zeros.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

Windows = Tensor  # (batch · ends, positions, …), all ends of a sequence side by side
# What a node keeps between pushes: a tensor, or a tuple of such; () before the first step.
State = Any


class Frame(NamedTuple):
    """The ends of a push: `ends` of them, the first `stride` steps after `start`."""

    batch: int
    start: int
    stride: int
    ends: int
    each: bool  # nothing is provisional, and every position is an output

    def steps(self, device: torch.device) -> int | Tensor:
        """How many steps there are before every end, for all ends alike or `(batch · ends, 1)`."""
        if self.ends == 1:
            return self.start + self.stride
        return self.positions(1, device) + 1

    def positions(self, count: int, device: torch.device) -> Tensor:
        """The last positions before every end, `(batch · ends, count)`; negative before the first step."""
        first = torch.arange(1, self.ends + 1, device=device) * self.stride + (self.start - count)
        return (first[:, None] + torch.arange(count, device=device)).repeat(self.batch, 1)

    def counted(self, x: Windows) -> Tensor | None:
        """True where a position is a step; None if all are."""
        if self.start + self.stride >= x.shape[1]:
            return None
        return self.positions(x.shape[1], x.device) >= 0

    def clear(self, x: Windows) -> Windows:
        """Put zeros before the first step."""
        counted = self.counted(x)
        if counted is None:
            return x
        return torch.where(counted.view(*counted.shape, *[1] * (x.dim() - 2)), x, 0.0)

    def final(self, x: Windows) -> Tensor:
        """The positions that have become final, end after end, `(batch, ends · stride, …)`."""
        return x[:, : self.stride].reshape(self.batch, self.ends * self.stride, *x.shape[2:])

    def extend(self, x: Windows, kept: State, before: int, after: int = 0) -> tuple[Windows, Tensor]:
        """Windows with `before` more final positions in front and `after` zeros behind, and what to keep."""
        if isinstance(kept, tuple):
            kept = x.new_zeros(self.batch, before, x.shape[2])
        beyond = [x.new_zeros(x.shape[0], after, x.shape[2])] if after else []
        if self.ends == 1:
            windows = torch.cat([kept, x, *beyond], dim=1)
            return windows, owned(windows[:, self.stride : self.stride + before], windows)
        path = torch.cat([kept, self.final(x)], dim=1)
        older = path.unfold(1, before, self.stride)[:, : self.ends].mT
        windows = torch.cat([older.reshape(x.shape[0], before, x.shape[2]), x, *beyond], dim=1)
        return windows, owned(path[:, path.shape[1] - before :], path)


def owned(part: Tensor, whole: Tensor) -> Tensor:
    """A part to be kept: not at the price of keeping a whole that is much larger."""
    return part if 16 * part.numel() >= whole.numel() else part.clone()
