"""The fused backends as custom operations of torch, with their derivatives.

A backend is a pair of custom operations. The forward one takes a `Recursion` and returns the levels along
time, the final state, and what is saved for the backward one: states from which the scan can be restarted
(checkpoints) and, if they are not too large, the products with all vectors. The backward one returns the
first derivatives. Second derivatives are rare, so autograd takes them through the reference.

The dispatcher and its autograd for custom operations cost as much as a small layer. If nothing traces or
intercepts operations, the same functions run without them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seq2tens.ops.dispatch import is_observed, may_be_differentiated
from seq2tens.ops.ls2t import reference
from seq2tens.ops.ls2t.recursion import MASK, TENSORS, Gradients, Recursion, Results, Saved

_INPUTS = (
    "Tensor x, Tensor weight, Tensor? bias, Tensor? coefficients, Tensor? powers, Tensor? mask, "
    "Tensor? state, int[] component, int[] parent, int[] output, bool reverse, bool return_sequences, "
    "bool keep"
)
_FORWARD_SCHEMA = f"({_INPUTS}) -> (Tensor, Tensor, Tensor, Tensor)"
_BACKWARD_SCHEMA = (
    f"(Tensor dout, Tensor dfinal, Tensor checkpoints, Tensor products, {_INPUTS}) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)"
)

_BEFORE_INPUTS = 2 + len(Saved._fields)  # arguments of the backward operation that precede the inputs


class Kernels(NamedTuple):
    """The functions of a backend.

    `forward(recursion, keeps_products)` returns the levels along time, the final state, and what is saved for
    `backward(dout, dfinal, saved, recursion)`. The latter returns the gradients of
    `recursion.differentiable`; a `dout` or `dfinal` of None stands for zeros. Whether products are kept
    depends on sizes, which may be symbolic while an operation is traced, so a traced one keeps none.
    """

    forward: Callable[[Recursion, bool], Results]
    backward: Callable[[Tensor | None, Tensor | None, Saved, Recursion], Gradients]
    empty_results: Callable[[Recursion], Results]


class Pair(NamedTuple):
    """The two custom operations of a backend, and its functions."""

    forward: Any
    backward: Any
    kernels: Kernels


def register_operations(name: str, kernels: Kernels, device_types: str | None = None) -> Pair:
    """Register a backend with torch as the operations `name` and `name_backward`."""
    custom_op = partial(torch.library.custom_op, mutates_args=(), device_types=device_types)

    @custom_op(name, schema=_FORWARD_SCHEMA)
    def forward(*arguments: Any) -> tuple[Tensor, ...]:
        output, final, saved = kernels.forward(Recursion.of(arguments), False)
        return output, final, *_without_none(saved, output)

    @custom_op(f"{name}_backward", schema=_BACKWARD_SCHEMA)
    def backward(dout: Tensor, dfinal: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
        inputs = Recursion.of(arguments[len(Saved._fields) :])
        saved = Saved(*(t if t.numel() else None for t in arguments[: len(Saved._fields)]))
        return _without_none(kernels.backward(dout, dfinal, saved, inputs), dout)

    @forward.register_fake
    def _(*arguments: Any) -> tuple[Tensor, ...]:
        output, final, saved = kernels.empty_results(Recursion.of(arguments))
        return output, final, *_without_none(saved, output)

    @backward.register_fake
    def _(dout: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
        return _without_none(Recursion.of(arguments[_BEFORE_INPUTS - 1 :]).empty_gradients(), dout)

    pair = Pair(forward, backward, kernels)
    _register_derivatives(pair)
    return pair


def _without_none(tensors: Sequence[Tensor | None], like: Tensor) -> tuple[Tensor, ...]:
    """Replace missing tensors, which a custom operation cannot return, by tensors of size 0."""
    return tuple(like.new_empty(0) if t is None else t for t in tensors)


def call(pair: Pair, recursion: Recursion) -> tuple[Tensor, Tensor]:
    """Return the levels, along time or at the end, and the final state."""
    if may_be_differentiated(*recursion.tensors):
        recursion = Recursion(*recursion[:-1], True)
    if is_observed(recursion.x):
        output, final, *_ = pair.forward(*recursion.arguments)
    elif recursion.keep:
        output, final = _Unobserved.apply(pair, recursion[TENSORS:], *recursion.tensors)
    else:
        output, final, _ = pair.kernels.forward(recursion, False)
    if recursion.return_sequences:
        return output, final
    levels = recursion.chains.output
    every_state = levels == tuple(range(final.shape[1]))
    return (final.clone() if every_state else final[:, list(levels)]), final


def _register_derivatives(pair: Pair) -> None:
    """Register the backward operation as the derivative of the forward one, and its own derivative."""

    def setup(ctx: Any, inputs: tuple, output: tuple) -> None:
        ctx.save_for_backward(*inputs[:TENSORS], *output[2:])
        ctx.rest = inputs[TENSORS:]
        ctx.mark_non_differentiable(*output[2:])

    def differentiate(ctx: Any, dout: Tensor, dfinal: Tensor, *dsaved: Tensor) -> tuple:
        saved_tensors = ctx.saved_tensors  # may be unpacked once only
        tensors, saved = saved_tensors[:TENSORS], saved_tensors[TENSORS:]
        gradients = pair.backward(dout, dfinal, *saved, *tensors, *ctx.rest)
        return *_as_inputs(gradients, tensors), *[None] * len(ctx.rest)

    pair.forward.register_autograd(differentiate, setup_context=setup)
    pair.backward.register_autograd(_differentiate_twice, setup_context=_setup_twice)


class _Unobserved(torch.autograd.Function):
    """The pair of operations under autograd, without going through the dispatcher."""

    @staticmethod
    def forward(ctx: Any, pair: Pair, rest: tuple, *tensors: Tensor | None) -> tuple[Tensor, Tensor]:
        output, final, saved = pair.kernels.forward(Recursion(*tensors, *rest), True)  # type: ignore[arg-type]
        ctx.save_for_backward(*tensors, *saved)
        ctx.set_materialize_grads(False)  # usually only one of the two results is differentiated
        ctx.pair, ctx.rest, ctx.shapes = pair, rest, (output.shape, final.shape)
        return output, final

    @staticmethod
    def backward(ctx: Any, dout: Tensor | None, dfinal: Tensor | None) -> tuple:
        saved_tensors = ctx.saved_tensors  # may be unpacked once only
        tensors, saved = saved_tensors[:TENSORS], Saved(*saved_tensors[TENSORS:])
        recursion = Recursion(*tensors, *ctx.rest)
        present = dout if dfinal is None else dfinal
        # grad mode in a backward pass means that it will be differentiated again
        if torch.is_grad_enabled() or (present is not None and is_observed(present)):
            pairs = zip((dout, dfinal), ctx.shapes, strict=True)
            incoming = (recursion.x.new_zeros(shape) if t is None else t for t, shape in pairs)
            complete = _without_none(saved, recursion.x)
            gradients = ctx.pair.backward(*incoming, *complete, *recursion.arguments)
        else:
            gradients = ctx.pair.kernels.backward(dout, dfinal, saved, recursion)
        return None, None, *_as_inputs(gradients, tensors)


def _as_inputs(gradients: Sequence[Tensor | None], tensors: Sequence[Tensor | None]) -> Gradients:
    """Return the gradients of all tensors, None for a missing one; autograd converts them to their dtypes."""
    by_tensor = (*gradients[:MASK], None, *gradients[MASK:])
    return tuple([None if t is None else g for t, g in zip(tensors, by_tensor, strict=True)])


def _setup_twice(ctx: Any, inputs: tuple, output: tuple) -> None:
    rest = inputs[_BEFORE_INPUTS:]
    ctx.save_for_backward(*inputs[:2], *rest[:TENSORS])
    ctx.rest = rest[TENSORS:]


def _differentiate_twice(ctx: Any, *incoming: Tensor) -> tuple:
    with torch.enable_grad():
        saved: list[Any] = [
            None if t is None else t.detach().requires_grad_(t.is_floating_point()) for t in ctx.saved_tensors
        ]
        first = _reference_gradients(Recursion.of((*saved[2:], *ctx.rest)), *saved[:2])
        pairs = [(f, g) for f, g in zip(first, incoming, strict=True) if f is not None and f.requires_grad]
        outputs, cotangents = zip(*pairs, strict=True)
        leaves = [t for t in saved if t is not None and t.requires_grad]
        second = iter(torch.autograd.grad(outputs, leaves, cotangents, allow_unused=True))
    dout, dfinal, *rest = (next(second) if t is not None and t.requires_grad else None for t in saved)
    return dout, dfinal, *[None] * len(Saved._fields), *rest, *[None] * len(ctx.rest)


def _reference_gradients(recursion: Recursion, dout: Tensor, dfinal: Tensor) -> list[Tensor | None]:
    """Return what the backward operation returns, computed with differentiable operations."""
    out, final = reference.ls2t(recursion)
    pairs = [(out, dout), (final, dfinal)] if recursion.return_sequences else [(final, dfinal)]
    outputs, cotangents = zip(*pairs, strict=True)
    leaves = [t for t in recursion.differentiable if t is not None]
    gradients = iter(torch.autograd.grad(outputs, leaves, cotangents, create_graph=True, allow_unused=True))
    return [None if t is None else next(gradients) for t in recursion.differentiable]
