"""Communication between the processes of a group, through the group's backend and with exact gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.distributed import ProcessGroup

T = TypeVar("T")
Stacked = Float[Tensor, "ranks *shape"]
Everyones = Shaped[Tensor, "ranks *shape"]


def gather(x: Shaped[Tensor, "*shape"], group: ProcessGroup | None = None) -> Everyones:
    """Stack the tensors of all ranks, which must have the same shape. No gradient flows."""
    stacked = x.new_empty(dist.get_world_size(group), *x.shape)
    dist.all_gather(list(stacked), x.detach().contiguous(), group=group)
    return stacked


def total(x: Shaped[Tensor, "*shape"], group: ProcessGroup | None = None) -> Shaped[Tensor, "*shape"]:
    """Sum the tensors of all ranks. No gradient flows."""
    summed = x.detach().clone(memory_format=torch.contiguous_format)
    dist.all_reduce(summed, group=group)
    return summed


def gather_objects(value: T, group: ProcessGroup | None = None) -> list[T]:
    """Return the values of all ranks; any object that can be pickled."""
    values: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(values, value, group=group)
    return values


def exchange(
    x: Float[Tensor, "*shape"], fold: Callable[[Stacked], Tensor], group: ProcessGroup | None = None
) -> Tensor:
    """Apply `fold` to the stacked tensors of all ranks, which must have the same shape.

    Each rank may use another `fold`. Gradients are those of the sum of the losses of all ranks, so every rank
    must run a backward pass through its result, even if its fold does not use the tensors of other ranks.
    `fold` must consist of differentiable operations on the stack and must not depend on any other tensor
    that requires a gradient.
    """
    return _Exchange.apply(x, fold, group)


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, fold: Callable[[Stacked], Tensor], group: ProcessGroup | None) -> Tensor:
        stacked = gather(x, group)
        if not ctx.needs_input_grad[0]:
            return fold(stacked)
        with torch.enable_grad():
            folded = fold(stacked.requires_grad_())
        ctx.stacked, ctx.folded, ctx.group = stacked, folded, group
        return folded.detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, None]:
        derivative = None
        if ctx.folded.requires_grad:  # False if the fold ignores the stack, as it may on the first rank
            (derivative,) = torch.autograd.grad(ctx.folded, ctx.stacked, gradient, retain_graph=True)
        parts = torch.zeros_like(ctx.stacked) if derivative is None else derivative
        return total(parts, ctx.group)[dist.get_rank(ctx.group)], None, None
