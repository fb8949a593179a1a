"""Layers of increments, LS2T recursion and batch normalisation, one upon the other, as one operation.

On short sequences most of the time of such a stack would otherwise pass between its parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as torch_F

from seq2tens import ops
from seq2tens._checks import in_func_transform
from seq2tens.ops._ends_plan import Shortcuts
from seq2tens.ops._memory import Workspace, workspace
from seq2tens.ops._operation import is_unobserved
from seq2tens.ops._stack_plan import Options, Plan, make_plan
from seq2tens.ops.normalize import Running, normalize

__all__ = ["Layer", "Options", "normalized_stack"]

Path = Float[Tensor, "batch time in_features"]
Mask = Bool[Tensor, "batch time"]


class Layer(NamedTuple):
    """Parameters of a layer."""

    weight: Float[Tensor, "components in_features width"]
    bias: Float[Tensor, "components width"] | None


def normalized_stack(
    x: Path,
    mask: Mask | None,
    layers: Sequence[Layer],
    options: Sequence[Options],
    running: Sequence[Running],
) -> Tensor:
    """Each layer takes the levels of the one before, flattened; the last one's are returned.

    Every level is normalised with its mean and variance over the batch, which the running ones of each layer
    follow. Steps that do not count must come last; their levels become 0.
    """
    plan = plan_of(x, mask, layers, options, running)
    if plan is None:
        return composed_stack(x, mask, layers, options, running)
    y: Tensor = _Stack.apply(plan, x, mask, running, *(parameter for layer in layers for parameter in layer))
    return y


def plan_of(
    x: Tensor,
    mask: Tensor | None,
    layers: Sequence[Layer],
    options: Sequence[Options],
    running: Sequence[Running],
    shortcuts: Shortcuts | None = None,
) -> Plan | None:
    """The programs for these layers, None where there are none."""
    following = [tensor for pair in running for tensor in pair]
    dtypes = {tensor.dtype for tensor in (x, *(layer.weight for layer in layers), *following)}
    if x.device.type != "cpu" or len(dtypes) > 1 or not is_unobserved(x) or in_func_transform(x):
        return None
    if not all(tensor.is_contiguous() for tensor in following):  # they are written in place
        return None
    sizes = tuple((layer.weight.shape, layer.bias is not None) for layer in layers)
    return make_plan(x.shape, x.dtype, mask is not None, sizes, tuple(options), shortcuts)


def composed_stack(
    x: Tensor,
    mask: Tensor | None,
    layers: Sequence[Layer],
    options: Sequence[Options],
    running: Sequence[Running] = (),
) -> Tensor:
    """The definition, in operations with which torch can do anything; without `running` nothing follows."""
    for (weight, bias), (chains, sequences, norm), found in zip_longest(layers, options, running):
        increments = x - torch_F.pad(x, (0, 0, 1, -1))
        levels, _ = ops.ls2t(increments, weight, bias, mask=mask, chains=chains, return_sequences=sequences)
        y, mean, variance = normalize(levels, mask if sequences else None, None, None, norm)
        if found is not None:
            found.follow(mean, variance, norm.momentum)
        x = y.flatten(-2)
    return x


class _Stack(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        plan: Plan,
        x: Tensor,
        mask: Tensor | None,
        running: Sequence[Running],
        *parameters: Tensor | None,
    ) -> Tensor:
        given = [None if t is None else t.contiguous() for t in (x, mask, *parameters)]
        y, arena = x.new_empty(plan.out_shape), workspace(plan.kept)
        given += [tensor for pair in running for tensor in pair]
        plan.forward.run(addresses(arena, plan.zeros, y, *given))
        ctx.save_for_backward(x, mask, *parameters)
        ctx.plan, ctx.arena, ctx.given = plan, arena, given
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        plan, (x, mask, *parameters) = ctx.plan, ctx.saved_tensors
        if torch.is_grad_enabled():  # to be differentiated again, for which there is no kernel
            return None, *_differentiable(dy, plan, x, mask, parameters)
        dy, scratch = dy.contiguous(), workspace(plan.passing)
        dx, gradients = x.new_empty(x.shape), [x.new_empty(shape) for shape in plan.parameters]
        tensors = (ctx.arena, plan.zeros, dy, *ctx.given, scratch, dx, *gradients)
        plan.backward.run(addresses(*tensors))
        found = (None if p is None else g for p, g in zip(parameters, gradients, strict=True))
        return None, dx, None, None, *found


def addresses(*tensors: Tensor | Workspace | None) -> list[int]:
    """Where they are in memory, 0 for none."""
    return [0 if tensor is None else tensor.data_ptr() for tensor in tensors]


def _differentiable(
    dy: Tensor, plan: Plan, x: Tensor, mask: Tensor | None, parameters: Sequence[Tensor | None]
) -> tuple[Tensor | None, ...]:
    inputs = [x, *parameters]
    wanted = [t for t in inputs if t is not None and t.requires_grad]
    pairs: Any = zip(parameters[::2], parameters[1::2], strict=True)
    y = composed_stack(x, mask, [Layer(*pair) for pair in pairs], plan.options)
    found = iter(torch.autograd.grad(y, wanted, dy, create_graph=True))
    dx, *rest = (next(found) if t is not None and t.requires_grad else None for t in inputs)
    return dx, None, None, *rest
