"""Values of beginnings and ends of blocks of steps, and of stretches of blocks: the parts of any interval."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2tens.ops._memory import empty
from seq2tens.ops._operation import is_unobserved
from seq2tens.ops._records import run_kernel
from seq2tens.ops._word_arrays import word_arrays
from seq2tens.ops.chains import Chains
from seq2tens.ops.cpu import why_not
from seq2tens.ops.factors import join, make_factors, mirrored
from seq2tens.ops.functionals import Functionals

BLOCK = 32  # steps; an interval within one block is summed step by step
_WORTH_A_TASK = 2**15  # numbers, some 10 µs

Numbers = Int[Tensor, " intervals"]


class Tables:
    """Tables for some sequences, one row for every step or block of every sequence.

    `ends` holds the values of the steps from one to the end of its block, on the states of the chains;
    `beginnings` those of the steps from the beginning of a block up to one, on all words; `stretches` those
    of whole blocks, see `_stretches`.
    """

    def __init__(self, functionals: Functionals, x: Tensor, mask: Tensor | None) -> None:
        self.functionals = functionals
        self.time, self.blocks = x.shape[1], -(-x.shape[1] // BLOCK)
        self.x, self.mask = x.flatten(0, 1), None if mask is None else mask.flatten()
        missing = (0, self.blocks * BLOCK - self.time)  # these come last, so no interval reaches them
        cut = torch.nn.functional.pad(x, (0, 0, *missing)).reshape(-1, BLOCK, x.shape[2])
        cut_mask = None if mask is None else torch.nn.functional.pad(mask, missing).reshape(-1, BLOCK)
        chains = functionals.chains
        backwards = functionals._replace(chains=mirrored(chains), reverse=True)
        ends, _ = backwards.run(cut, cut_mask)
        every = functionals._replace(chains=make_factors(chains).chains)
        beginnings, whole = every.run(cut, cut_mask)
        self.ends, self.beginnings = ends.flatten(0, 1), beginnings.flatten(0, 1)
        self.stretches = _stretches(whole.unflatten(0, (-1, self.blocks)), chains)

    def levels(self, start: Numbers, stop: Numbers, owner: Numbers) -> Float[Tensor, "intervals order width"]:
        """Levels of the steps from `start` to before `stop` of sequence `owner`, for every interval."""
        within = (start // BLOCK >= (stop - 1) // BLOCK).nonzero()[:, 0]
        if len(within) == 0:
            return self._across(start, stop, owner)
        found = self._within(start[within], stop[within], owner[within])
        if len(within) == len(start):
            return found
        # those few that lie within a block are looked up like the others, and put right afterwards
        return self._across(start, stop, owner).index_copy_(0, within, found)

    def _within(self, start: Numbers, stop: Numbers, owner: Numbers) -> Tensor:
        """Intervals of at most a block, from their steps."""
        steps = torch.arange(BLOCK, device=start.device)
        rows = owner[:, None] * self.time + (start[:, None] + steps).clamp(max=self.time - 1)
        mask = steps < (stop - start)[:, None]
        if self.mask is not None:
            mask &= self.mask[rows]
        x = self.x.index_select(0, rows.flatten()).unflatten(0, rows.shape)
        return self.functionals.run(x, mask, return_sequences=False)[0]

    def _across(self, start: Numbers, stop: Numbers, owner: Numbers) -> Tensor:
        """Intervals that cross the border of a block, from the tables."""
        end = owner * self.blocks * BLOCK + start.clamp(max=self.time - 1)
        left, right = self._stretch_rows(start // BLOCK + 1, (stop - 1) // BLOCK - 1, owner)
        beginning = owner * self.blocks * BLOCK + (stop - 1).clamp(min=0)
        tables = (self.ends, self.stretches, self.beginnings)
        differentiated = torch.is_grad_enabled() and self.beginnings.requires_grad
        if differentiated or why_not(*tables) is not None or not is_unobserved(self.ends):
            return self._composed(end, left, right, beginning)
        return self._fused(end, left, right, beginning)

    def _composed(self, end: Numbers, left: Numbers, right: Numbers, beginning: Numbers) -> Tensor:
        chains = self.functionals.chains
        states = self.ends.index_select(0, end)
        for table, rows in ((self.stretches, left), (self.stretches, right), (self.beginnings, beginning)):
            states = join(states, table.index_select(0, rows), None, chains)
        return states[:, list(chains.output)]

    def _fused(self, end: Numbers, left: Numbers, right: Numbers, beginning: Numbers) -> Tensor:
        from seq2tens.ops._interval_kernels import AT, entry

        chains, (_, words, width) = self.functionals.chains, self.beginnings.shape
        out = empty((len(end), len(chains.output), width), self.ends.dtype)
        numbers = {
            "intervals": len(end), "states": len(chains.component), "words": words, "width": width,
            "levels": out.shape[1], "nothing": len(self.stretches) - 1, "end_size": self.ends.numel(),
            "stretch_size": self.stretches.numel(), "beginning_size": self.beginnings.numel(),
            "tasks": max(1, min(16, out.numel() // _WORTH_A_TASK)),
            "scratch_size": len(chains.component) * width * 8,
        }  # fmt: skip
        tensors = {
            "ends": self.ends, "stretches": self.stretches, "beginnings": self.beginnings, "end": end,
            "left": left, "right": right, "beginning": beginning, "out": out,
        }  # fmt: skip
        run_kernel(entry(8 * out.itemsize), AT, numbers, {**word_arrays(chains), **tensors})
        return out

    def _stretch_rows(self, first: Numbers, last: Numbers, owner: Numbers) -> tuple[Numbers, Numbers]:
        """Rows of `stretches` that make up the blocks from `first` to `last`, of which there may be none.

        If k is the highest bit in which two numbers differ, one border of 2^k blocks lies between them.
        """
        k = (torch.frexp((first ^ last).double()).exponent.long() - 1).clamp(min=0)
        nothing = len(self.stretches) - 1
        base = (k * (len(self.x) // self.time) + owner) * self.blocks
        left = torch.where(first <= last, base + first, nothing)
        return left, torch.where(first < last, base + last, nothing)


def _stretches(values: Float[Tensor, "batch blocks words width"], chains: Chains) -> Tensor:
    """For each power of two below the number of blocks, and each block, the values of a stretch of blocks.

    Where bit k of a block's number is 1 it begins at the last border of 2^k blocks and ends with the block;
    where it is 0 it begins with the block and ends at the next border. Rows are numbered by k, sequence and
    block, and the last one is nothing at all.
    """
    number = torch.arange(values.shape[1], device=values.device)
    before = after = values
    tables = []
    for k in range(max(1, (len(number) - 1).bit_length())):
        second = (number >> k) % 2 == 1
        tables.append(torch.where(second[:, None, None], before, after).flatten(0, 1))
        later = number[second]
        border = ((later >> k) << k) - 1
        longer = join(before.index_select(1, border), before.index_select(1, later), None, chains)
        before = before.index_copy(1, later, longer)
        border = ((number >> k) + 1) << k
        inside = ~second & (border < len(number))
        earlier, border = number[inside], border[inside]
        longer = join(after.index_select(1, earlier), after.index_select(1, border), None, chains)
        after = after.index_copy(1, earlier, longer)
    return torch.cat([*tables, values.new_zeros(1, *values.shape[2:])])
