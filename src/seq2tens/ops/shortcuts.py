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
from seq2tens.ops.normalize import Each, Settings, normalize, normalize_product
from seq2tens.ops.stack import Layer, Statistics, addresses, composed_stack, plan_of

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
) -> tuple[Float[Tensor, "batch out_features"], Statistics]:
    """`near`, normalised, and the start shortcut of `x` enter the stack; its last levels and the end shortcut
    of the mean of `near` over time leave it.

    All statistics are those of the batch; they are returned for each layer, then for `near`, start and end,
    without a gradient. Steps that do not count come last in `near` and `x`, and are 0.
    """
    wanted = Shortcuts(settings, x.shape[2])
    plan = plan_of(near, mask, layers, options, wanted) if x.dtype == near.dtype else None
    if plan is None:
        return _composed(near, x, mask, layers, options, ends, settings)
    parameters = [parameter for layer in layers for parameter in layer]
    outside = (ends.weight, ends.bias, *ends.start, *ends.end)
    y, *found = _Shortcuts.apply(plan, near, x, mask, *outside, *parameters)
    return y, list(zip(found[::2], found[1::2], strict=True))


def _composed(
    near: Tensor,
    x: Tensor,
    mask: Tensor | None,
    layers: Sequence[Layer],
    options: Sequence[Options],
    ends: Ends,
    settings: Settings,
) -> tuple[Tensor, Statistics]:
    """The definition, in operations with which torch can do anything."""
    alone, (weight, bias, start, end) = settings._replace(scale=1.0), ends
    normal = normalize(near, mask, weight, bias, alone)
    beside = normalize_product(x, start.matrix.squeeze(2), start.shift, mask, *start[2:], alone)
    entering = (normal.values + beside.values) * settings.scale
    levels, statistics = composed_stack(entering, mask, layers, options)
    pooled = _mean(near, _shares(near, mask))
    around = normalize_product(pooled, end.matrix.squeeze(2), end.shift, None, *end[2:], alone)
    statistics += [(found.mean, found.variance) for found in (normal, beside, around)]
    return (levels + around.values) * settings.scale, statistics


def _shares(near: Tensor, mask: Tensor | None) -> Float[Tensor, "batch time"]:
    """What each step counts for in the mean over time."""
    if mask is None:
        return near.new_full(near.shape[:2], 1 / near.shape[1])
    return mask.to(near.dtype) / mask.sum(1, keepdim=True).clamp(min=1)


def _mean(near: Tensor, shares: Tensor) -> Float[Tensor, "batch channels"]:
    return torch.bmm(shares[:, None], near)[:, 0]


class _Shortcuts(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, plan: Plan, near: Tensor, x: Tensor, mask: Tensor | None, *parameters: Tensor | None
    ) -> tuple[Tensor, ...]:
        given: list[Any] = [None if t is None else t.contiguous() for t in (near, mask, x, *parameters)]
        outside, layers = given[3:13], given[13:]
        y, arena = near.new_empty(plan.out_shape), workspace(plan.kept, near.dtype)
        statistics = list(near.new_empty(sum(plan.statistics)).split(plan.statistics))
        inner, outer = statistics[:-6], statistics[-6:]
        common = [*given[:2], *layers, *inner, given[2], *outside, *outer]
        plan.forward.run(addresses(arena, plan.zeros, y, *common))
        ctx.save_for_backward(near, x, mask, *parameters)
        ctx.plan, ctx.arena, ctx.common = plan, arena, common
        ctx.set_materialize_grads(False)  # zeros for all statistics
        statistics[-4], statistics[-2] = outer[2] + outside[3], outer[4] + outside[7]  # with their shifts
        ctx.mark_non_differentiable(*statistics)
        return y, *statistics

    @staticmethod
    def backward(ctx: Any, dy: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
        plan, (near, x, mask, *parameters) = ctx.plan, ctx.saved_tensors
        if dy is None:
            return (None,) * (4 + len(parameters))
        if torch.is_grad_enabled():  # to be differentiated again, for which there is no kernel
            return None, *_differentiable(dy, plan, near, x, mask, parameters)
        dy, scratch = dy.contiguous(), workspace(plan.passing, near.dtype)
        dlayers = [near.new_empty(shape) for shape in plan.parameters]
        dnear, dbeside = near.new_empty(near.shape), near.new_empty(near.shape)
        outside = [near.new_empty(parameter.shape) for parameter in parameters[:10]]
        passed = (*dlayers, dnear, dbeside, *outside)
        plan.backward.run(addresses(ctx.arena, plan.zeros, dy, *ctx.common, scratch, None, *passed))
        dx = dbeside @ parameters[2].squeeze(2) if ctx.needs_input_grad[2] else None
        found = (None if p is None else g for p, g in zip(parameters[10:], dlayers, strict=True))
        return None, dnear, dx, None, *outside, *found


def _differentiable(
    dy: Tensor,
    plan: Plan,
    near: Tensor,
    x: Tensor,
    mask: Tensor | None,
    parameters: Sequence[Any],
) -> tuple[Tensor | None, ...]:
    tensors = [near, x, None, *parameters]
    wanted = [t for t in tensors if t is not None and t.requires_grad]
    pairs = zip(parameters[10::2], parameters[11::2], strict=True)
    ends = Ends(parameters[0], parameters[1], Shortcut(*parameters[2:6]), Shortcut(*parameters[6:10]))
    assert plan.shortcuts is not None
    y, _ = _composed(near, x, mask, [Layer(*pair) for pair in pairs], plan.options, ends, plan.shortcuts.norm)
    found = iter(torch.autograd.grad(y, wanted, dy, create_graph=True))
    return tuple(next(found) if t is not None and t.requires_grad else None for t in tensors)
