"""One rank's chunk of sequences that are split over ranks along time, and what lies around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
import torch.distributed as dist
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.distributed import ProcessGroup

from seq2tens import _checks as check
from seq2tens.ops.collectives import Stacked, exchange, gather

Path = Float[Tensor, "batch time channels"]


class Chunk:
    """Where a chunk stands: rank 0 has the first steps, rank 1 the next, and so on, as many as it likes.

    In each sequence the steps that count come first, `mask` being True for them (None: all count). Every
    method but `clock` is called by all ranks together, and every rank must go backwards through its result.
    """

    def __init__(self, x: Path, mask: Bool[Tensor, "batch time"] | None, group: ProcessGroup | None) -> None:
        self.group, self.rank, self.size = group, dist.get_rank(group), dist.get_world_size(group)
        self.mask = mask
        _check_alike(x, group)
        own = x.new_full(x.shape[:1], x.shape[1], dtype=torch.long) if mask is None else mask.sum(1)
        self.counts: Int[Tensor, "ranks batch"] = gather(own, group)
        self.total = self.counts.sum(0)
        self.before = self.counts[: self.rank].sum(0)

    def clock(self, x: Path, mode: Literal["index", "centred"]) -> Float[Tensor, "batch time 1"]:
        """Time as in `functional.time_embedding`, of the whole sequence."""
        steps = torch.arange(1, x.shape[1] + 1, device=x.device)
        index = (self.before[:, None] + steps).double()  # more steps than float32 can count
        total = self.total[:, None].double()
        if mode == "index":
            clock = index / total.clamp(min=1)
        else:
            clock = torch.where(total > 1, 2 * (index - 1) / (total - 1).clamp(min=1) - 1, 0.0)
        clock = clock if self.mask is None else clock * self.mask
        return clock.to(x.dtype)[..., None]

    def mean(self, x: Path) -> Float[Tensor, "batch channels"]:
        """Mean over the steps that count, of all ranks."""
        own = (x if self.mask is None else x * self.mask[..., None]).sum(1)
        return exchange(own, lambda parts: parts.sum(0), self.group) / self.total.clamp(min=1)[:, None]

    def dropout(self, x: Tensor, rate: float, training: bool) -> Tensor:
        """Drop whole channels, the same on all ranks, as the first one draws them."""
        if rate == 0 or not training:
            return x
        drawn = gather(torch.rand(x.shape[0], x.shape[-1], device=x.device), self.group)[0]
        kept = (drawn >= rate).to(x.dtype) / (1 - rate)
        return x * (kept if x.dim() == 2 else kept[:, None])

    def extended(self, x: Path, before: int, after: int) -> Float[Tensor, "batch extended channels"]:
        """The chunk with the nearest steps on both sides, of whichever ranks; beyond the ends are zeros.

        Steps of `x` that do not count must be 0 where `after` is not.
        """
        if before + after == 0:
            return x
        ends = torch.cat([_head(x, after), self._tail(x, before)], dim=1)
        around = exchange(ends, lambda parts: self._around(parts, before, after), self.group)
        left, right = around.tensor_split([before], dim=1)
        if self.mask is None or after == 0:
            return torch.cat([left, x, right], dim=1)
        padded = torch.cat([left, x, torch.zeros_like(right)], dim=1)
        place = before + self.counts[self.rank][:, None] + torch.arange(after, device=x.device)
        return padded.scatter(1, place[..., None].expand_as(right), right)

    def _tail(self, x: Path, steps: int) -> Path:
        """The last steps that count, at the end of the result."""
        if self.mask is None:
            return torch.nn.functional.pad(
                x[:, max(0, x.shape[1] - steps) :], (0, 0, max(0, steps - x.shape[1]), 0)
            )
        index = self.counts[self.rank][:, None] - steps + torch.arange(steps, device=x.device)
        return x.gather(1, index.clamp(min=0)[..., None].expand(-1, -1, x.shape[2]))

    def _around(self, ends: Stacked, before: int, after: int) -> Tensor:
        """Steps before and after this rank's, out of the heads and tails of all ranks."""
        left, right = torch.zeros_like(ends[0, :, after:]), torch.zeros_like(ends[0, :, :after])
        for rank in reversed(self._reach(range(self.rank - 1, -1, -1), before)):
            left = _push(left, ends[rank, :, after:], self.counts[rank])
        for rank in reversed(self._reach(range(self.rank + 1, self.size), after)):
            right = _push(right.flip(1), ends[rank, :, :after].flip(1), self.counts[rank]).flip(1)
        return torch.cat([left, right], dim=1)

    def _reach(self, ranks: Sequence[int], steps: int) -> list[int]:
        """The first of these ranks, as many as are needed to find so many steps in every sequence."""
        found, missing = [], torch.full_like(self.total, steps)
        for rank in ranks:
            if bool((missing <= 0).all()):
                break
            found.append(rank)
            missing = missing - self.counts[rank]
        return found


def _push(line: Path, new: Path, counts: Int[Tensor, " batch"]) -> Path:
    """Move a line of steps to the left as the last `counts` of `new` enter it from the right."""
    steps = line.shape[1]
    entering, place = counts.clamp(max=steps)[:, None], torch.arange(steps, device=line.device)
    source = torch.where(place >= steps - entering, steps + place, place + entering)
    return torch.cat([line, new], dim=1).gather(1, source[..., None].expand_as(line))


def _head(x: Path, steps: int) -> Path:
    return torch.nn.functional.pad(x[:, :steps], (0, 0, 0, max(0, steps - x.shape[1])))


def _check_alike(x: Path, group: ProcessGroup | None) -> None:
    """Sizes that differ between ranks would make collectives fail in obscure ways, or wait for ever."""
    own = torch.tensor([x.shape[0], x.shape[2], x.dtype.itemsize], device=x.device)
    for rank, (batch, channels, itemsize) in enumerate(gather(own, group).tolist()):
        check.require(
            [batch, channels, itemsize] == own.tolist(),
            "`x` must have the same batch, channels and dtype on all ranks, got "
            f"({batch}, …, {channels}) of {itemsize} bytes on rank {rank} and "
            f"({x.shape[0]}, …, {x.shape[2]}) of {x.dtype.itemsize} bytes on rank {dist.get_rank(group)}",
        )
