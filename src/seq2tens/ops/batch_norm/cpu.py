"""Batch normalisation on CPUs: the kernels of `csrc/batch_norm.cpp` under autograd."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor

from seq2tens.ops import native
from seq2tens.ops.batch_norm import reference
from seq2tens.ops.batch_norm.reference import Running, Settings
from seq2tens.ops.dispatch import cpu_unsupported, is_observed


class Forward(native.Struct):
    """A forward pass; see `csrc/seq2tens.h`."""

    name = "seq2tens_batch_norm"
    _fields_ = (
        native.fields("is_double threads rows channels inner")
        + native.fields("eps momentum", ctypes.c_double)
        + native.arrays("x mask weight bias y mean variance running_mean running_variance")
    )


class Backward(native.Struct):
    """Its adjoint; see `csrc/seq2tens.h`."""

    name = "seq2tens_batch_norm_gradients"
    _fields_ = native.fields("call", ctypes.POINTER(Forward)) + native.arrays("y x weight bias")


def unsupported(
    x: Tensor,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    running: Running | None = None,
    settings: Settings | None = None,
) -> str | None:
    """Why the kernels cannot take these arguments; None if they can."""
    if is_observed(x):
        return "there is no operation that torch could trace; the reference consists of them"
    statistics = [] if running is None else [running.mean, running.variance]
    tensors = [t for t in (x, mask, weight, bias, *statistics) if t is not None]
    if any(t.dtype not in (x.dtype, torch.bool) for t in tensors) or x.dtype.itemsize < 4:
        return "tensors are of half precision or several dtypes"
    if not all(t.is_contiguous() for t in statistics):
        return "running statistics are parts of other tensors, and are written in place"
    return "`x` is empty" if x.numel() == 0 else cpu_unsupported(*tensors)


def batch_norm(
    x: Tensor,
    mask: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    running: Running | None,
    settings: Settings,
) -> Tensor:
    """Same signature and meaning as `reference.batch_norm`."""
    y: Tensor = _BatchNorm.apply(x, mask, weight, bias, running, settings)
    return y


class _BatchNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        mask: Tensor | None,
        weight: Tensor | None,
        bias: Tensor | None,
        running: Running | None,
        settings: Settings,
    ) -> Tensor:
        call, arrays = _describe(x, mask, weight, bias, settings)
        y, statistics = torch.empty_like(arrays[0]), x.new_empty(2, call.channels)
        call.y, call.mean, call.variance = map(native.address, (y, *statistics))
        if running is not None:
            call.momentum = running.momentum
            call.running_mean, call.running_variance = map(native.address, running[:2])
        native.run("batch_norm_forward", call)
        ctx.save_for_backward(x, mask, weight, bias, statistics)
        ctx.settings = settings
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, mask, weight, bias, statistics = ctx.saved_tensors
        if torch.is_grad_enabled():  # to be differentiated again, for which there is no kernel
            return _differentiable(dy, x, mask, weight, bias, ctx.settings)
        call, arrays = _describe(x, mask, weight, bias, ctx.settings)
        call.mean, call.variance = map(native.address, statistics)
        dy, dx = dy.contiguous(), torch.empty_like(arrays[0])
        dweight, dbias = (None if t is None else torch.empty_like(statistics[0]) for t in (weight, bias))
        addresses = map(native.address, (dy, dx, dweight, dbias))
        native.run("batch_norm_backward", Backward(ctypes.pointer(call), *addresses))
        return dx, None, dweight, dbias, None, None


def _describe(
    x: Tensor, mask: Tensor | None, weight: Tensor | None, bias: Tensor | None, settings: Settings
) -> tuple[Forward, list[Tensor]]:
    """The struct of a call without its results, and the contiguous tensors whose addresses stand in it."""
    arrays = [None if t is None else t.contiguous() for t in (x, mask, weight, bias)]
    channels, inner = settings.channels(x.shape), settings.inner or 1
    call = Forward(
        x.dtype == torch.float64, native.threads(), x.numel() // (channels * inner), channels, inner,
        settings.eps, 0.0, *map(native.address, arrays),
    )  # fmt: skip
    return call, arrays  # type: ignore[return-value]


def _differentiable(
    dy: Tensor,
    x: Tensor,
    mask: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    settings: Settings,
) -> tuple[Tensor | None, ...]:
    inputs = (x, mask, weight, bias)
    wanted = [t for t in inputs if t is not None and t.requires_grad]
    y = reference.batch_norm(x, mask, weight, bias, None, settings)
    gradients = iter(torch.autograd.grad(y, wanted, dy, create_graph=True))
    return *(next(gradients) if t is not None and t.requires_grad else None for t in inputs), None, None
