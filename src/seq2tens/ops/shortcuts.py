"""A stack of LS2T layers with a shortcut to its start and one around it, as one operation.

What enters the stack, and what leaves it, is a sum of two normalised branches, times a factor. On short
sequences most of the time would otherwise pass between the many small parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from seq2tens.ops._ends_plan import Shortcuts
from seq2tens.ops._memory import workspace
from seq2tens.ops._stack_plan import Options, Plan
from seq2tens.ops.normalize import Each, Running, Settings, normalize, normalize_product
from seq2tens.ops.stack import Layer, addresses, composed_stack, plan_of

__all__ = ["Shortcut", "shortcut_stack"]

Path = Float[Tensor, "batch time channels"]
Mask = Bool[Tensor, "batch time"]


class Shortcut(NamedTuple):
    """Linear map and normalisation: `matrix` and `shift`, then `weight` and `bias`.

    The matrix is the kernel of a convolution of one step, as it is: to change its shape takes time, too.
    """

    matrix: Float[Tensor, "channels features 1"]
    shift: Each
    weight: Each
    bias: Each


class Ends(NamedTuple):
    """Parameters outside of the stack: of the normalisation of `near`, and of both shortcuts."""

    weight: Each
    bias: Each
    start: Shortcut
    end: Shortcut


def shortcut_stack(
    near: Path,
    x: Float[Tensor, "batch time in_features"],
    mask: Mask | None,
    layers: Sequence[Layer],
    options: Sequence[Options],
    ends: Ends,
    settings: Settings,
    running: Sequence[Running],
) -> Float[Tensor, "batch out_features"]:
    """`near`, normalised, and the start shortcut of `x` enter the stack; its last levels and the end shortcut
    of the mean of `near` over time leave it.

    All statistics are those of the batch, which the running ones follow: of each layer, then of `near`, start
    and end. Steps that do not count come last in `near` and `x`, and are 0.
    """
    wanted = Shortcuts(settings, x.shape[2])
    plan = plan_of(near, mask, layers, options, running, wanted) if x.dtype == near.dtype else None
    if plan is None:
        return _composed(near, x, mask, layers, options, ends, settings, running)
    parameters = [parameter for layer in layers for parameter in layer]
    outside = (ends.weight, ends.bias, *ends.start, *ends.end)
    y: Tensor = _Shortcuts.apply(plan, near, x, mask, running, *outside, *parameters)
    return y


def _composed(
    near: Tensor,
    x: Tensor,
    mask: Tensor | None,
    layers: Sequence[Layer],
    options: Sequence[Options],
    ends: Ends,
    settings: Settings,
    running: Sequence[Running] = (),
) -> Tensor:
    """The definition, in operations with which torch can do anything; without `running` nothing follows."""
    alone, (weight, bias, start, end) = settings._replace(scale=1.0), ends
    normal = normalize(near, mask, weight, bias, alone)
    beside = normalize_product(x, start.matrix.squeeze(2), start.shift, mask, *start[2:], alone)
    entering = (normal.values + beside.values) * settings.scale
    levels = composed_stack(entering, mask, layers, options, running[: len(layers)])
    pooled = _mean(near, mask)
    around = normalize_product(pooled, end.matrix.squeeze(2), end.shift, None, *end[2:], alone)
    for outside, found in zip(running[len(layers) :], (normal, beside, around), strict=False):
        outside.follow(found.mean, found.variance, settings.momentum)
    return (levels + around.values) * settings.scale


def _mean(near: Tensor, mask: Tensor | None) -> Float[Tensor, "batch channels"]:
    """Over the steps that count."""
    if mask is None:
        return near.mean(1)
    return (near * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


class _Shortcuts(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        plan: Plan,
        near: Tensor,
        x: Tensor,
        mask: Tensor | None,
        running: Sequence[Running],
        *parameters: Tensor | None,
    ) -> Tensor:
        given: list[Any] = [None if t is None else t.contiguous() for t in (near, mask, x, *parameters)]
        outside, layers = given[3:13], given[13:]
        y, arena = near.new_empty(plan.out_shape), workspace(plan.kept)
        following = [tensor for pair in running for tensor in pair]
        common = [*given[:2], *layers, *following[:-6], given[2], *outside, *following[-6:]]
        plan.forward.run(addresses(arena, plan.zeros, y, *common))
        ctx.save_for_backward(near, x, mask, *parameters)
        ctx.plan, ctx.arena, ctx.common = plan, arena, common
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        plan, (near, x, mask, *parameters) = ctx.plan, ctx.saved_tensors
        if torch.is_grad_enabled():  # to be differentiated again, for which there is no kernel
            return None, *_differentiable(dy, plan, near, x, mask, parameters)
        dy, scratch = dy.contiguous(), workspace(plan.passing)
        dlayers = [near.new_empty(shape) for shape in plan.parameters]
        dnear, dbeside = near.new_empty(near.shape), near.new_empty(near.shape)
        outside = [near.new_empty(parameter.shape) for parameter in parameters[:10]]
        passed = (*dlayers, dnear, dbeside, *outside)
        plan.backward.run(addresses(ctx.arena, plan.zeros, dy, *ctx.common, scratch, None, *passed))
        dx = dbeside @ parameters[2].squeeze(2) if ctx.needs_input_grad[2] else None
        found = (None if p is None else g for p, g in zip(parameters[10:], dlayers, strict=True))
        return None, dnear, dx, None, None, *outside, *found


def _differentiable(
    dy: Tensor,
    plan: Plan,
    near: Tensor,
    x: Tensor,
    mask: Tensor | None,
    parameters: Sequence[Any],
) -> tuple[Tensor | None, ...]:
    tensors = [near, x, None, None, *parameters]
    wanted = [t for t in tensors if t is not None and t.requires_grad]
    pairs = zip(parameters[10::2], parameters[11::2], strict=True)
    ends = Ends(parameters[0], parameters[1], Shortcut(*parameters[2:6]), Shortcut(*parameters[6:10]))
    assert plan.shortcuts is not None
    y = _composed(near, x, mask, [Layer(*pair) for pair in pairs], plan.options, ends, plan.shortcuts.norm)
    found = iter(torch.autograd.grad(y, wanted, dy, create_graph=True))
    return tuple(next(found) if t is not None and t.requires_grad else None for t in tensors)
