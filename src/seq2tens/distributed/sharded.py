"""The context of sequences that are split over ranks along time: each rank has a chunk of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
import torch.distributed as dist
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.distributed import ProcessGroup

from seq2tens import _checks as check
from seq2tens import functional as F
from seq2tens.distributed.layer import prefix_state
from seq2tens.functional import Series
from seq2tens.nn import LS2T, MaskedConv, Whole, difference_by_halo
from seq2tens.ops import collectives


class Sharded(Whole):
    """The context of sequences split over ranks: rank 0 has the first steps, rank 1 the next, and so on.

    Chunks may differ in length. In each chunk the valid steps, where `mask` is True, come first; None means
    that all are valid. All ranks must call every method except `clock` and `count` together, and each must
    run a backward pass through its result.
    """

    def __init__(
        self, x: Series, mask: Bool[Tensor, "batch time"] | None, group: ProcessGroup | None
    ) -> None:
        super().__init__(mask)
        self.group, self.rank, self.size = group, dist.get_rank(group), dist.get_world_size(group)
        _check_alike(x, group)
        local = x.new_full(x.shape[:1], x.shape[1], dtype=torch.long) if mask is None else mask.sum(1)
        self.counts: Int[Tensor, "ranks batch"] = collectives.gather(local, group)
        self.total = self.counts.sum(0)
        self.before = self.counts[: self.rank].sum(0)

    def clock(self, x: Series, mode: Literal["index", "centred"]) -> Float[Tensor, "batch time 1"]:
        """Return the relative time within the whole sequence."""
        steps = torch.arange(1, x.shape[1] + 1, device=x.device)
        index = (self.before[:, None] + steps).double()  # there may be more steps than float32 can count
        return self.clear(F.clock(index, self.total[:, None].double(), mode)[..., None]).to(x.dtype)

    def mean(self, x: Series) -> Float[Tensor, "batch channels"]:
        """Return the mean over the valid steps of all ranks."""
        self.reductions += 1
        local = self.clear(x).sum(1)
        return (
            collectives.exchange(local, lambda parts: parts.sum(0), self.group)
            / self.total.clamp(min=1)[:, None]
        )

    def ls2t(self, layer: LS2T, x: Series) -> Float[Tensor, "batch *time order width"]:
        """Continue the recursion from the state of earlier ranks, or return its levels after all ranks."""
        functionals = {**layer.functionals(), "mask": self.mask}
        transfer = F.transfer(x, **functionals)
        if layer.return_sequences:
            levels = F.ls2t(x, **functionals, state=prefix_state(transfer, layer.reverse, self.group))
            assert isinstance(levels, Tensor)
            return levels
        self.reductions += 1
        final = prefix_state(transfer, layer.reverse, self.group, after_all=True)
        return final[:, list(transfer.chains.output)]

    def count(self, x: Series, *, reverse: bool = False, at_end: bool = False) -> Int[Tensor, "batch ..."]:
        """Count the valid steps of all ranks up to each step, or from it on, or all with `at_end`."""
        if at_end:
            return self.total
        after = self.total - self.before - self.counts[self.rank]
        return super().count(x, reverse=reverse) + (after if reverse else self.before)[:, None]

    def dropout(self, x: Tensor, rate: float, training: bool) -> Tensor:
        """Drop whole channels, the same on all ranks: those that rank 0 draws."""
        if rate == 0 or not training:
            return x
        drawn = collectives.gather(torch.rand(x.shape[0], x.shape[-1], device=x.device), self.group)[0]
        factor = (drawn >= rate).to(x.dtype) / (1 - rate)
        return x * (factor if x.dim() == 2 else factor[:, None])

    def halo(self, x: Series, before: int, after: int) -> Float[Tensor, "batch extended channels"]:
        """Extend the steps by their neighbours, on whichever ranks these are."""
        if before + after == 0:
            return x
        x = self.clear(x) if after else x
        edges = torch.cat([_head(x, after), self._tail(x, before)], dim=1)
        neighbors = collectives.exchange(
            edges, lambda parts: self._neighbors(parts, before, after), self.group
        )
        left, right = neighbors.tensor_split([before], dim=1)
        if self.mask is None or after == 0:
            return torch.cat([left, x, right], dim=1)
        padded = torch.cat([left, x, torch.zeros_like(right)], dim=1)
        place = before + self.counts[self.rank][:, None] + torch.arange(after, device=x.device)
        return padded.scatter(1, place[..., None].expand_as(right), right)

    difference = difference_by_halo

    def convolve(
        self, convolution: MaskedConv, x: Series, before: int, after: int, train_bias: bool = True
    ) -> Float[Tensor, "batch positions out_features"]:
        """Convolve the steps with as many neighbours before and after them, see `halo`."""
        extended = self.halo(x, before, after)
        return F.convolve(extended, convolution.weight, convolution.bias, train_bias=train_bias)

    def _tail(self, x: Series, steps: int) -> Series:
        """Return the last valid steps, aligned at the end."""
        if self.mask is None:
            return torch.nn.functional.pad(
                x[:, max(0, x.shape[1] - steps) :], (0, 0, max(0, steps - x.shape[1]), 0)
            )
        index = self.counts[self.rank][:, None] - steps + torch.arange(steps, device=x.device)
        return x.gather(1, index.clamp(min=0)[..., None].expand(-1, -1, x.shape[2]))

    def _neighbors(self, edges: collectives.Stacked, before: int, after: int) -> Tensor:
        """Return the steps before and after those of this rank, from the heads and tails of all ranks."""
        left, right = torch.zeros_like(edges[0, :, after:]), torch.zeros_like(edges[0, :, :after])
        for rank in reversed(self._reach(range(self.rank - 1, -1, -1), before)):
            left = _push(left, edges[rank, :, after:], self.counts[rank])
        for rank in reversed(self._reach(range(self.rank + 1, self.size), after)):
            right = _push(right.flip(1), edges[rank, :, :after].flip(1), self.counts[rank]).flip(1)
        return torch.cat([left, right], dim=1)

    def _reach(self, ranks: Sequence[int], steps: int) -> list[int]:
        """Return as many of these ranks as it takes to find `steps` valid steps in every sequence."""
        nearest, remaining = [], torch.full_like(self.total, steps)
        for rank in ranks:
            if bool((remaining <= 0).all()):
                break
            nearest.append(rank)
            remaining = remaining - self.counts[rank]
        return nearest


def _push(line: Series, new: Series, counts: Int[Tensor, " batch"]) -> Series:
    """Shift a line of steps to the left, and append the last `counts` steps of `new`."""
    steps = line.shape[1]
    entering, place = counts.clamp(max=steps)[:, None], torch.arange(steps, device=line.device)
    source = torch.where(place >= steps - entering, steps + place, place + entering)
    return torch.cat([line, new], dim=1).gather(1, source[..., None].expand_as(line))


def _head(x: Series, steps: int) -> Series:
    return torch.nn.functional.pad(x[:, :steps], (0, 0, 0, max(0, steps - x.shape[1])))


def _check_alike(x: Series, group: ProcessGroup | None) -> None:
    """Require equal sizes on all ranks; otherwise collectives would fail obscurely or wait forever."""
    local = torch.tensor([x.shape[0], x.shape[2], x.dtype.itemsize], device=x.device)
    for rank, (batch, channels, itemsize) in enumerate(collectives.gather(local, group).tolist()):
        check.require(
            [batch, channels, itemsize] == local.tolist(),
            "`x` must have the same batch, channels and dtype on all ranks, got "
            f"({batch}, …, {channels}) of {itemsize} bytes on rank {rank} and "
            f"({x.shape[0]}, …, {x.shape[2]}) of {x.dtype.itemsize} bytes on rank {dist.get_rank(group)}",
        )
