"""The functionals of all windows of a sequence, in operations of torch and scans of blocks of steps.

Time is cut into blocks as long as a window. A window is then the end of one block and the beginning of the
next.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from seq2tens.ops.ls2t import Functionals
from seq2tens.ops.subwords import join, make_subwords, mirrored

PIECE = 2**20  # numbers computed at a time, few enough to stay in the caches


def slide(functionals: Functionals, x: Tensor, mask: Tensor | None, window: int, stride: int) -> Tensor:
    """Return the levels of windows that begin at steps 0, stride, …, `(batch, windows, levels, width)`."""
    tensors = [t for t in (x, *functionals[:3]) if t is not None]
    differentiated = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
    return torch.cat(list(_pieces(functionals, x, mask, window, stride, differentiated)), dim=1)


class _Blocks(NamedTuple):
    """Some blocks of steps of every sequence, as one batch."""

    x: Tensor
    mask: Tensor | None

    def steps(self, first: int, last: int) -> _Blocks:
        """Return the steps from `first` to `last - 1` of every block."""
        return _Blocks(self.x[:, first:last], None if self.mask is None else self.mask[:, first:last])


def _pieces(
    functionals: Functionals, x: Tensor, mask: Tensor | None, window: int, stride: int, again: bool
) -> Iterator[Tensor]:
    """Yield the levels of windows piece by piece: some steps of a block or, if blocks are short, some blocks.

    With `again` the backward pass recomputes each piece instead of keeping what it needs.
    """
    batch, time, _ = x.shape
    starts = time - window + 1
    words = len(make_subwords(functionals.chains).chains.component)
    steps = max(64, PIECE // max(1, batch * words * functionals.weight.shape[2]))
    group, piece = min(-(-starts // window), max(1, steps // window)), min(window, steps)
    for first in range(0, starts, group * window):
        blocks = min(group, -(-(starts - first) // window))
        here, following = (_cut(x, mask, first + shift, blocks, window) for shift in (0, window))
        pieces = _Pieces(functionals, here, following, piece)
        for begin, values in pieces.windows(min(window, starts - first), again):
            low = first + begin
            values = values.unflatten(0, (batch, blocks)).flatten(1, 2)[:, : starts - low]
            yield values[:, -low % stride :: stride]


def _cut(x: Tensor, mask: Tensor | None, first: int, blocks: int, window: int) -> _Blocks:
    """Return blocks from step `first` on; beyond the end of the sequences they hold 0."""

    def cut(tensor: Tensor) -> Tensor:
        part = tensor[:, first : first + blocks * window]
        missing = part.new_zeros(part.shape[0], blocks * window - part.shape[1], *part.shape[2:])
        whole = torch.cat([part, missing], dim=1) if missing.shape[1] else part
        return whole.reshape(-1, window, *part.shape[2:])

    return _Blocks(cut(x), None if mask is None else cut(mask))


class _Pieces:
    """The windows that begin in some blocks and end in the following ones, a few steps of each at a time."""

    def __init__(self, functionals: Functionals, here: _Blocks, following: _Blocks, piece: int) -> None:
        self.here, self.following, self.piece = here, following, piece
        self.chains = chains = functionals.chains
        self.ends = functionals._replace(chains=mirrored(chains), reverse=True)
        self.beginnings = functionals._replace(chains=make_subwords(chains).chains)

    def windows(self, starts: int, again: bool) -> Iterator[tuple[int, Tensor]]:
        """Yield the first step of each piece and the levels of the windows that begin in it."""
        borders, state = self._borders(), None
        for begin in range(0, starts, self.piece):
            run = partial(checkpoint, self._run, use_reentrant=False) if again else self._run
            values, state = run(begin, borders.pop(), state)
            yield begin, values

    def _borders(self) -> list[Tensor | None]:
        """Return the initial states of the pieces in a scan from the end of the blocks, last piece first."""
        borders: list[Tensor | None] = [None]
        window = self.here.x.shape[1]
        for begin in reversed(range(self.piece, window, self.piece)):
            part = self.here.steps(begin, begin + self.piece)
            _, state = self.ends.run(*part, borders[-1], return_sequences=False)
            borders.append(state)
        return borders

    def _run(self, begin: int, border: Tensor | None, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the levels of windows that begin in a piece, and the next state in the following blocks."""
        end = begin + self.piece
        left, _ = self.ends.run(*self.here.steps(begin, end), border)
        right, after = self.beginnings.run(*self.following.steps(begin, end), state)
        state = torch.zeros_like(after) if state is None else state
        first = join(left[:, :1], state[:, None], None, self.chains)
        states = torch.cat([first, join(left[:, 1:], right[:, :-1], None, self.chains)], dim=1)
        return states[..., list(self.chains.output), :], after
