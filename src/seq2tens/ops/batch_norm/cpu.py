"""Batch normalisation on CPUs: the kernels of `csrc/batch_norm.cpp` under autograd."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor

from seq2tens.ops import native
from seq2tens.ops.batch_norm import reference
from seq2tens.ops.batch_norm.reference import Running, Settings
from seq2tens.ops.dispatch import cpu_unsupported, is_observed, reference_gradients


class Forward(native.Struct):
    """A forward pass; see `csrc/seq2tens.h`."""

    name = "seq2tens_batch_norm"
    _fields_ = (
        native.fields("is_double threads rows channels inner")
        + native.fields("eps momentum", ctypes.c_double)
        + native.arrays("x mask weight bias y mean variance running_mean running_variance")
    )


class Backward(native.Struct):
    """A backward pass; see `csrc/seq2tens.h`."""

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
    """Return why the kernels cannot handle these arguments; None if they can."""
    if is_observed(x):
        return "torch cannot trace it; use the reference"
    statistics = () if running is None else (running.mean, running.variance)
    tensors = [t for t in (x, weight, bias, *statistics) if t is not None]
    if not native.supported_dtype(*tensors):
        return "the tensors have half precision or several dtypes"
    if statistics and not (statistics[0].is_contiguous() and statistics[1].is_contiguous()):
        return "the running statistics are not contiguous, but must be written in place"
    if mask is not None:
        tensors.append(mask)
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
        call = _describe(x, mask, weight, bias, settings)
        y = torch.empty_like(x, memory_format=torch.contiguous_format)
        mean, variance = x.new_empty(call.channels), x.new_empty(call.channels)
        call.y, call.mean, call.variance = native.addresses(y, mean, variance)
        if running is not None:
            call.momentum = running.momentum
            call.running_mean, call.running_variance = native.addresses(*running[:2])
        native.run_kernel("batch_norm_forward", call)
        ctx.save_for_backward(x, mask, weight, bias, mean, variance)
        ctx.settings = settings
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, mask, weight, bias, mean, variance = ctx.saved_tensors
        if torch.is_grad_enabled():  # will be differentiated again, for which there is no kernel
            inputs = (x, mask, weight, bias, None, ctx.settings)
            return reference_gradients(reference.batch_norm, inputs, dy)
        call = _describe(x, mask, weight, bias, ctx.settings)
        call.mean, call.variance = native.addresses(mean, variance)
        dx = torch.empty_like(x, memory_format=torch.contiguous_format)
        dweight = None if weight is None else torch.empty_like(mean)
        dbias = None if bias is None else torch.empty_like(mean)
        native.run_kernel("batch_norm_backward", Backward.of([ctypes.pointer(call)], dy, dx, dweight, dbias))
        return dx, None, dweight, dbias, None, None


def _describe(
    x: Tensor, mask: Tensor | None, weight: Tensor | None, bias: Tensor | None, settings: Settings
) -> Forward:
    """Return the struct of a call, without the addresses of its results."""
    channels, inner = settings.channels(x.shape), settings.inner or 1
    sizes = (x.numel() // (channels * inner), channels, inner)
    numbers = (x.dtype == torch.float64, native.threads(), *sizes, settings.eps, 0.0)
    return Forward.of(numbers, x, mask, weight, bias)
