"""The LS2T layer on one sequence that is split over ranks: each rank sends one small transfer."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.distributed import ProcessGroup

from seq2tens import functional as F
from seq2tens.ops import collectives


def ls2t(
    x: Float[Tensor, "batch time in_features"],
    weight: Float[Tensor, "components in_features width"],
    bias: Float[Tensor, "components width"] | None = None,
    *,
    order: int,
    mask: Bool[Tensor, "batch time"] | None = None,
    lengths: Int[Tensor, " batch"] | None = None,
    reverse: bool = False,
    return_sequences: bool = True,
    group: ProcessGroup | None = None,
    backend: Any = None,
    **options: Any,
) -> Tensor:
    """Compute `functional.ls2t` on sequences that are split over the ranks of a group.

    All ranks must call it together. Gradients are exactly those of the sum of the losses of all ranks, so
    every rank must run a backward pass through its result. Gradients of `weight` and `bias` must be summed
    over ranks, see `sum_gradients`.

    Args:
        x: the chunk of this rank. Rank 0 has the first steps; a chunk may be empty.
        weight: the same on all ranks, as are `bias` and the options.
        bias: see `functional.ls2t`.
        order: see `functional.ls2t`.
        mask: True for valid steps of the chunk.
        lengths: number of valid steps of each sequence within the chunk.
        reverse: see `functional.ls2t`.
        return_sequences: return the steps of the chunk, or the value for the whole sequence on every rank.
        group: the process group, by default all processes.
        backend: see `functional.ls2t`.
        options: other options of `functional.ls2t`.
    """
    options = {
        "order": order,
        "mask": mask,
        "lengths": lengths,
        "reverse": reverse,
        "backend": backend,
    } | options
    chunk = F.transfer(x, weight, bias, **options)
    if not return_sequences:
        return prefix_state(chunk, reverse, group, after_all=True)[:, list(chunk.chains.output)]
    state = prefix_state(chunk, reverse, group)
    if x.shape[1] == 0:
        return state[:, None, list(chunk.chains.output)][:, :0]
    output = F.ls2t(x, weight, bias, state=state, **options)
    assert isinstance(output, Tensor)
    return output


def prefix_state(
    chunk: F.Transfer, reverse: bool, group: ProcessGroup | None, *, after_all: bool = False
) -> Float[Tensor, "batch states width"]:
    """Return the state after the steps of earlier ranks; with `after_all`, after those of all ranks."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    ranks = range(size - 1, -1, -1) if reverse else range(size)
    earlier = list(ranks if after_all else ranks[: ranks.index(rank)])

    def fold(parts: collectives.Stacked) -> Tensor:
        if not earlier:
            return torch.zeros_like(F.apply_transfer(None, chunk))
        return F.apply_transfer(None, tree_reduce(_unpack(parts[earlier], chunk)))

    return collectives.exchange(_pack(chunk), fold, group)


def tree_reduce(chunks: F.Transfer) -> F.Transfer:
    """Return the joint transfer of chunks stacked along the first axis; each round joins all pairs."""
    while (n := len(chunks.values)) > 1:
        pairs = F.combine(_rows(chunks, slice(0, n - 1, 2)), _rows(chunks, slice(1, n, 2)))
        chunks = pairs if n % 2 == 0 else _append(pairs, _rows(chunks, slice(n - 1, n)))
    return chunks._replace(**{name: t[0] for name, t in _tensors(chunks).items()})


def _rows(chunks: F.Transfer, rows: slice) -> F.Transfer:
    return chunks._replace(**{name: t[rows] for name, t in _tensors(chunks).items()})


def _append(chunks: F.Transfer, last: F.Transfer) -> F.Transfer:
    both = {name: torch.cat([t, getattr(last, name)]) for name, t in _tensors(chunks).items()}
    return chunks._replace(**both)  # type: ignore[arg-type]


def _tensors(chunks: F.Transfer) -> dict[str, Any]:
    fields = {"values": chunks.values, "fading": chunks.fading}
    return {name: tensor for name, tensor in fields.items() if tensor is not None}


def _pack(chunk: F.Transfer) -> Tensor:
    """Return a transfer as one tensor, to be sent in one message."""
    if chunk.fading is None:
        return chunk.values
    return torch.cat([chunk.values, chunk.fading[:, None]], dim=1)


def _unpack(packed: Tensor, like: F.Transfer) -> F.Transfer:
    if like.fading is None:
        return like._replace(values=packed)
    return like._replace(values=packed[..., :-1, :], fading=packed[..., -1, :])
