"""The functionals of arbitrary intervals of sequences, from tables that are filled in one pass."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2tens.ops import dispatch
from seq2tens.ops.intervals import cpu, reference
from seq2tens.ops.intervals.parts import Parts, Rows, make_stretches
from seq2tens.ops.ls2t import Functionals
from seq2tens.ops.subwords import make_subwords, mirrored

BLOCK = 32  # steps; an interval within one block is computed from its steps

dispatch.register("intervals", "cpu", cpu.look_up, dispatch.forward_unsupported)
dispatch.register("intervals", "reference", reference.look_up, dispatch.always_supported)

Numbers = Int[Tensor, " intervals"]


class Tables:
    """Precomputed values of parts of some sequences, from which those of any interval are combined."""

    def __init__(self, functionals: Functionals, x: Tensor, mask: Tensor | None) -> None:
        self.functionals = functionals
        self.time, self.blocks = x.shape[1], -(-x.shape[1] // BLOCK)
        self.x, self.mask = x.flatten(0, 1), None if mask is None else mask.flatten()
        missing = (0, self.blocks * BLOCK - self.time)  # padding at the end, which no interval reaches
        cut = torch.nn.functional.pad(x, (0, 0, *missing)).reshape(-1, BLOCK, x.shape[2])
        cut_mask = None if mask is None else torch.nn.functional.pad(mask, missing).reshape(-1, BLOCK)
        chains = functionals.chains
        backwards = functionals._replace(chains=mirrored(chains), reverse=True)
        ends, _ = backwards.run(cut, cut_mask)
        every = functionals._replace(chains=make_subwords(chains).chains)
        beginnings, whole = every.run(cut, cut_mask)
        stretches = make_stretches(whole.unflatten(0, (-1, self.blocks)), chains)
        self.parts = Parts(ends.flatten(0, 1), stretches, beginnings.flatten(0, 1))

    def levels(self, start: Numbers, stop: Numbers, owner: Numbers) -> Float[Tensor, "intervals order width"]:
        """Return, for every interval, the levels of the steps `start` to `stop - 1` of sequence `owner`."""
        within = (start // BLOCK >= (stop - 1) // BLOCK).nonzero()[:, 0]
        if len(within) == 0:
            return self._across(start, stop, owner)
        levels = self._within(start[within], stop[within], owner[within])
        if len(within) == len(start):
            return levels
        # the few intervals within one block are looked up like the others, then overwritten
        return self._across(start, stop, owner).index_copy_(0, within, levels)

    def _within(self, start: Numbers, stop: Numbers, owner: Numbers) -> Tensor:
        """Return the levels of intervals of at most a block, from their steps."""
        steps = torch.arange(BLOCK, device=start.device)
        rows = owner[:, None] * self.time + (start[:, None] + steps).clamp(max=self.time - 1)
        mask = steps < (stop - start)[:, None]
        if self.mask is not None:
            mask &= self.mask[rows]
        x = self.x.index_select(0, rows.flatten()).unflatten(0, rows.shape)
        return self.functionals.run(x, mask, return_sequences=False)[0]

    def _across(self, start: Numbers, stop: Numbers, owner: Numbers) -> Tensor:
        """Return the levels of intervals that cross a block boundary, from the tables."""
        end = owner * self.blocks * BLOCK + start.clamp(max=self.time - 1)
        left, right = self._stretch_rows(start // BLOCK + 1, (stop - 1) // BLOCK - 1, owner)
        beginning = owner * self.blocks * BLOCK + (stop - 1).clamp(min=0)
        backend = None if self.functionals.backend in (None, "auto", "cpu") else "reference"
        rows = Rows(end, left, right, beginning)
        levels: Tensor = dispatch.run("intervals", backend, self.parts, rows, self.functionals.chains)
        return levels

    def _stretch_rows(self, first: Numbers, last: Numbers, owner: Numbers) -> tuple[Numbers, Numbers]:
        """Return the rows of `stretches` that cover the blocks from `first` to `last`; there may be none.

        If k is the highest bit in which two block numbers differ, exactly one multiple of 2^k separates them.
        """
        k = (torch.frexp((first ^ last).double()).exponent.long() - 1).clamp(min=0)
        nothing = len(self.parts.stretches) - 1
        base = (k * (len(self.x) // self.time) + owner) * self.blocks
        left = torch.where(first <= last, base + first, nothing)
        return left, torch.where(first < last, base + last, nothing)
