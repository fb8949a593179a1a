"""The full map on CPUs: the kernels of `csrc/full_map.cpp` as custom operations of torch."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seq2tens.ops import native
from seq2tens.ops.dispatch import is_observed, may_be_differentiated
from seq2tens.ops.full_map import reference

_LANES = 8  # sequences that advance side by side
_BLOCK = 32  # steps between two checkpoints
_LARGE = 4096  # size of the top level from which sequences are processed one at a time


class Forward(native.Struct):
    """A forward pass; see `csrc/seq2tens.h`."""

    name = "seq2tens_full_map"
    _fields_ = native.fields(
        "is_double threads batch points dim order lift_order increments sequences lanes block"
    ) + native.arrays("x coefficients out checkpoints")


class Backward(native.Struct):
    """A backward pass; see `csrc/seq2tens.h`."""

    name = "seq2tens_full_map_gradients"
    _fields_ = native.fields("call", ctypes.POINTER(Forward)) + native.arrays("out x coefficients")


class Options(NamedTuple):
    """Options of a call."""

    order: int
    sequences: bool  # whether to return the map of every prefix, not only of the whole sequence
    increments: bool  # steps are differences of the points


class BackwardInputs(NamedTuple):
    """Tensors that the forward pass saves for the backward pass."""

    checkpoints: Tensor  # all levels but the top one of the state before every block of steps
    x: Tensor
    coefficients: Tensor


class Plan(NamedTuple):
    """How the work of one call is divided. It only depends on shapes, so results do not depend on threads."""

    lanes: int  # sequences that advance side by side
    out: tuple[int, ...]  # shape of the result
    checkpoints: tuple[int, ...]  # shape of the states before every block of steps


def _plan(shape: tuple[int, ...], options: Options) -> Plan:
    batch, points, dim = shape
    order, sequences, increments = options
    length, top = points - increments, dim**order
    lower = sum(dim**m for m in range(order))
    lanes = _LANES if batch >= _LANES // 2 and top < _LARGE and not sequences else 1
    checkpoints = (-(-batch // lanes), -(-length // _BLOCK), lower * lanes)
    out = (batch, length, lower + top) if sequences else (batch, lower + top)
    return Plan(lanes, out, checkpoints)


_make_plan = lru_cache(maxsize=256)(_plan)


def full_map(
    x: Tensor, coefficients: Tensor, order: int, return_sequences: bool, increments: bool = False
) -> Tensor:
    """Same signature and meaning as `reference.full_map`."""
    keep = may_be_differentiated(x, coefficients)
    options = Options(order, return_sequences, increments)
    if is_observed(x):
        return torch.ops.seq2tens.full_map(x, coefficients, *options, keep)[0]
    if keep:
        return _Unobserved.apply(x, coefficients, options)
    return _compute(x, coefficients, options, keep)[0]


class _Unobserved(torch.autograd.Function):
    """The operations under autograd, without the dispatcher, which costs as much as a small call."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, coefficients: Tensor, options: Options) -> Tensor:
        out, checkpoints = _compute(x, coefficients, options, True)
        ctx.save_for_backward(*BackwardInputs(checkpoints, x, coefficients))
        ctx.options = options
        return out

    @staticmethod
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor | None, ...]:
        learn = ctx.needs_input_grad[1]
        # grad mode in a backward pass means that it will be differentiated again
        direct = not torch.is_grad_enabled() and not is_observed(dout)
        run: Any = _compute_backward if direct else _call_backward
        dx, dcoefficients = run(dout, BackwardInputs(*ctx.saved_tensors), ctx.options, learn)
        return dx, dcoefficients if learn else None, None


def _describe(x: Tensor, coefficients: Tensor, plan: Plan, options: Options) -> Forward:
    """Return the struct of a call, without the addresses of its results."""
    numbers = (
        x.dtype == torch.float64, native.threads(), *x.shape, options.order, len(coefficients),
        options.increments, options.sequences, plan.lanes, _BLOCK,
    )  # fmt: skip
    return Forward.of(numbers, x, coefficients.double())


def _compute(x: Tensor, coefficients: Tensor, options: Options, keep: bool) -> tuple[Tensor, Tensor]:
    """Return the coordinates of Φ and the checkpoints."""
    plan = _make_plan(tuple(x.shape), options)
    call = _describe(x, coefficients, plan, options)
    out = torch.empty(plan.out, dtype=x.dtype)
    checkpoints = torch.empty(plan.checkpoints if keep else 0, dtype=torch.float64)
    call.out = out.data_ptr()
    if keep:
        call.checkpoints = checkpoints.data_ptr()
    native.run_kernel("full_map_forward", call)
    return out, checkpoints


_register = torch.library.custom_op(
    "seq2tens::full_map",
    mutates_args=(),
    device_types="cpu",
    schema="(Tensor x, Tensor coefficients, int order, bool sequences, bool increments, bool keep) "
    "-> (Tensor, Tensor)",
)


@_register
def _forward(x: Tensor, coefficients: Tensor, *flags: Any) -> tuple[Tensor, Tensor]:
    *options, keep = flags
    return _compute(x, coefficients, Options(*options), keep)


@_forward.register_fake
def _(x: Tensor, coefficients: Tensor, *flags: Any) -> tuple[Tensor, Tensor]:
    *options, keep = flags
    plan = _plan(x.shape, Options(*options))
    return x.new_empty(plan.out), x.new_empty(plan.checkpoints if keep else 0, dtype=torch.float64)


def _compute_backward(
    dout: Tensor, saved: BackwardInputs, options: Options, learn: bool
) -> tuple[Tensor, Tensor]:
    """Return the gradients of x and of the coefficients; the latter is 0 unless `learn`."""
    x, coefficients = saved.x, saved.coefficients
    call = _describe(x, coefficients, _make_plan(tuple(x.shape), options), options)
    checkpoints = saved.checkpoints.contiguous()
    call.checkpoints = checkpoints.data_ptr()
    dx = torch.empty_like(x, memory_format=torch.contiguous_format)
    dcoefficients = torch.zeros(len(coefficients), dtype=torch.float64)
    struct = Backward.of([ctypes.pointer(call)], dout, dx, dcoefficients if learn else None)
    native.run_kernel("full_map_backward", struct)
    return dx, dcoefficients.to(coefficients.dtype)


_register_backward = torch.library.custom_op(
    "seq2tens::full_map_backward",
    mutates_args=(),
    device_types="cpu",
    schema="(Tensor dout, Tensor checkpoints, Tensor x, Tensor coefficients, int order, bool sequences, "
    "bool increments, bool learn) -> (Tensor, Tensor)",
)


@_register_backward
def _backward(dout: Tensor, *flags: Any) -> tuple[Tensor, Tensor]:
    checkpoints, x, coefficients, *options, learn = flags
    return _compute_backward(dout, BackwardInputs(checkpoints, x, coefficients), Options(*options), learn)


def _call_backward(
    dout: Tensor, saved: BackwardInputs, options: Options, learn: bool
) -> tuple[Tensor, Tensor]:
    """Run `_compute_backward` as a custom operation that torch can trace and differentiate."""
    dx, dcoefficients = torch.ops.seq2tens.full_map_backward(dout, *saved, *options, learn)
    return dx, dcoefficients


@_backward.register_fake
def _(
    dout: Tensor, checkpoints: Tensor, x: Tensor, coefficients: Tensor, *options: Any
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x, memory_format=torch.contiguous_format), torch.empty_like(coefficients)


def _setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
    x, coefficients, *options, _ = inputs
    ctx.options = Options(*options)
    ctx.save_for_backward(*BackwardInputs(output[1], x, coefficients))
    ctx.mark_non_differentiable(output[1])


def _differentiate(ctx: Any, dout: Tensor, dkept: Tensor) -> tuple:
    learn = ctx.needs_input_grad[1]
    dx, dc = _call_backward(dout, BackwardInputs(*ctx.saved_tensors), ctx.options, learn)
    return dx, dc if learn else None, None, None, None, None


_forward.register_autograd(_differentiate, setup_context=_setup_context)


def _setup_second_context(ctx: Any, inputs: tuple, output: tuple) -> None:
    dout, _, x, coefficients, *ctx.options, _ = inputs
    ctx.save_for_backward(dout, x, coefficients)


def _differentiate_twice(ctx: Any, ddx: Tensor, ddc: Tensor) -> tuple:
    """Take second derivatives by autograd through the reference; they are rare."""
    with torch.enable_grad():
        leaves = dout, x, c = [t.detach().requires_grad_() for t in ctx.saved_tensors]
        value = reference.full_map(x, c, *ctx.options)
        first = torch.autograd.grad(value, (x, c), dout, create_graph=True)
        dout2, x2, c2 = torch.autograd.grad(first, leaves, (ddx, ddc), allow_unused=True)
    return dout2, None, x2, c2, None, None, None, None


_backward.register_autograd(_differentiate_twice, setup_context=_setup_second_context)
