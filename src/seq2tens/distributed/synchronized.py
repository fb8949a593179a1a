"""Batch normalisation with the statistics of several processes, as if their batches were one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.distributed import ProcessGroup

from seq2tens import functional as F
from seq2tens.nn import MaskedBatchNorm
from seq2tens.ops import collectives

Rows = Float[Tensor, "rows channels inner"]
PerChannel = Float[Tensor, " channels"]


class Peers:
    """The processes of a group that normalise together, each its own rows.

    Gradients are those of the sum of the losses of all processes. Gradients of scale and shift must still be
    summed over processes.
    """

    def __init__(self, group: ProcessGroup | None = None) -> None:
        self.group, self.counting = group, True

    @contextmanager
    def absent(self) -> Iterator[None]:
        """Exclude the rows of this process from the statistics while the context is active."""
        self.counting = False
        try:
            yield
        finally:
            self.counting = True

    def batch_norm(
        self,
        x: Tensor,
        running: F.Running,
        weight: PerChannel | None,
        bias: PerChannel | None,
        mask: Bool[Tensor, "*steps"] | None,
        *,
        training: bool,
        eps: float,
        levels: bool,
    ) -> Tensor:
        """Normalise like `functional.batch_norm` in training, over the valid steps of all processes."""
        rows = x.reshape(-1, len(running.mean), x.shape[-1] if levels else 1)
        counted = None if mask is None else mask.reshape(-1)
        if not self.counting:
            counted = x.new_zeros(len(rows), dtype=torch.bool)
        y, mean, variance = _NormalizeRows.apply(rows, counted, weight, bias, eps, self.group)
        with torch.no_grad():
            running.follow(mean, variance)
        return y.reshape(x.shape)


@contextmanager
def synchronized(network: nn.Module, peers: Peers) -> Iterator[None]:
    """Make every normalisation in a network use the rows of all processes in training."""
    norms = [module for module in network.modules() if isinstance(module, MaskedBatchNorm)]
    for norm in norms:
        norm.peers = peers
    try:
        yield
    finally:
        for norm in norms:
            norm.peers = None


class _NormalizeRows(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        mask: Tensor | None,
        weight: Tensor | None,
        bias: Tensor | None,
        eps: float,
        group: ProcessGroup | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        count, mean, variance = _moments(x, mask, group)
        scale = (variance + eps).rsqrt().to(x.dtype)
        mean, variance = mean.to(x.dtype), variance.to(x.dtype)
        ctx.save_for_backward(x, mask, weight, mean, scale, count)
        ctx.group, ctx.biased = group, bias is not None
        factor = scale if weight is None else scale * weight
        y = (x - mean[:, None]).mul_(factor[:, None])
        y = y if bias is None else y.add_(bias[:, None])
        ctx.mark_non_differentiable(mean, variance)
        return _counted(y, mask), mean, variance

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, mask, weight, mean, scale, count = ctx.saved_tensors
        dy, centered = _counted(dy, mask), x - mean[:, None]
        dbias, dweight = dy.sum((0, 2)), (dy * centered).sum((0, 2)) * scale
        # The mean and the variance depend on every valid row, on whichever process it is.
        both = (collectives.total(torch.stack([dbias, dweight]).double(), ctx.group) / count).to(x.dtype)
        factor = scale if weight is None else scale * weight
        shift, slope = (-factor * both[0])[:, None], (-factor * scale * both[1])[:, None]
        dx = torch.addcmul(torch.addcmul(shift, centered, slope), dy, factor[:, None])
        gradients = dweight if weight is not None else None, dbias if ctx.biased else None
        return _counted(dx, mask), None, *gradients, None, None


def _moments(x: Rows, mask: Tensor | None, group: ProcessGroup | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return the number of valid entries, and each channel's mean and variance, over all processes."""
    rows = x.new_tensor(len(x), dtype=torch.float64) if mask is None else mask.sum(dtype=torch.float64)
    count = rows * x.shape[2]
    mean = _counted(x, mask).sum((0, 2)).double() / count.clamp(min=1)
    centered = _counted(x - mean.to(x.dtype)[:, None], mask)
    squares = centered.square_().sum((0, 2)).double()
    parts = collectives.gather(torch.cat([count[None], mean, squares]), group)
    return _combine(*parts.tensor_split([1, 1 + len(mean)], dim=1))


def _combine(counts: Tensor, means: Tensor, squares: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Combine squares about each process's mean into those about the common mean, without cancellation."""
    count = counts.sum().clamp(min=1)
    mean = (counts * means).sum(0) / count
    variance = (squares + counts * (means - mean).square()).sum(0) / count
    return count, mean, variance


def _counted(rows: Rows, mask: Tensor | None) -> Rows:
    """Set invalid rows to 0."""
    return rows if mask is None else rows * mask[:, None, None]
