"""Batch normalisation on CPUs: the kernels of `csrc/batch_norm.cpp` under autograd."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as torch_F

from seq2tens.ops import native
from seq2tens.ops.batch_norm import reference
from seq2tens.ops.batch_norm.reference import Normalized, Settings
from seq2tens.ops.dispatch import cpu_unsupported, is_observed


class Forward(native.Struct):
    """A forward pass; see `csrc/seq2tens.h`."""

    name = "seq2tens_batch_norm"
    _fields_ = (
        native.fields("is_double threads rows channels inner rectified")
        + native.fields("eps scale momentum", ctypes.c_double)
        + native.arrays("x mask weight bias addend shift y mean variance running_mean running_variance")
    )


class Backward(native.Struct):
    """Its adjoint; see `csrc/seq2tens.h`."""

    name = "seq2tens_batch_norm_gradients"
    _fields_ = native.fields("call", ctypes.POINTER(Forward)) + native.arrays("y x weight bias")


def unsupported(x: Tensor, *others: Any) -> str | None:
    """Why the kernels cannot take these arguments; None if they can."""
    if is_observed(x):
        return "there is no operation that torch could trace; the reference consists of them"
    tensors = [x, *(t for t in others if isinstance(t, Tensor))]
    if any(t.dtype not in (x.dtype, torch.bool) for t in tensors) or x.dtype.itemsize < 4:
        return "tensors are of half precision or several dtypes"
    return "`x` is empty" if x.numel() == 0 else cpu_unsupported(*tensors)


def normalize(
    x: Tensor, mask: Tensor | None, weight: Tensor | None, bias: Tensor | None, settings: Settings
) -> Normalized:
    """Same signature and meaning as `reference.normalize`."""
    return Normalized(*_Normalize.apply(x, mask, weight, bias, settings))


def normalize_product(
    rows: Tensor,
    matrix: Tensor,
    shift: Tensor,
    mask: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    settings: Settings,
) -> Normalized:
    """Same signature and meaning as `reference.normalize_product`, with less time between the two."""
    return Normalized(*_NormalizeProduct.apply(rows, matrix, shift, mask, weight, bias, settings))


class _Normalize(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        mask: Tensor | None,
        weight: Tensor | None,
        bias: Tensor | None,
        settings: Settings,
    ) -> Normalized:
        found = _forward(x, mask, weight, bias, settings)
        ctx.save_for_backward(x, mask, weight, bias, *found)
        ctx.settings = settings
        ctx.mark_non_differentiable(found.mean, found.variance)
        return found

    @staticmethod
    def backward(ctx: Any, dy: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, mask, weight, bias, *found = ctx.saved_tensors
        if torch.is_grad_enabled():  # to be differentiated again, for which there is no kernel
            return _differentiable(dy, x, mask, weight, bias, ctx.settings)
        dx, dweight, dbias = _backward(dy, x, mask, weight, Normalized(*found), ctx.settings)
        return dx, None, None if weight is None else dweight, None if bias is None else dbias, None


class _NormalizeProduct(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        matrix: Tensor,
        shift: Tensor,
        mask: Tensor | None,
        weight: Tensor | None,
        bias: Tensor | None,
        settings: Settings,
    ) -> Normalized:
        x = torch_F.linear(rows, matrix)
        found = _forward(x, mask, weight, bias, settings)
        ctx.save_for_backward(rows, matrix, x, mask, weight, bias, *found)
        ctx.settings = settings
        shifted = found._replace(mean=found.mean + shift)
        ctx.mark_non_differentiable(shifted.mean, shifted.variance)
        return shifted

    @staticmethod
    def backward(ctx: Any, dy: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        rows, matrix, x, mask, weight, bias, *found = ctx.saved_tensors
        dx: Tensor | None
        if torch.is_grad_enabled():
            x = torch_F.linear(rows, matrix)
            dx, _mask, dweight, dbias, _settings = _differentiable(dy, x, mask, weight, bias, ctx.settings)
        else:
            dx, dweight, dbias = _backward(dy, x, mask, weight, Normalized(*found), ctx.settings)
        assert dx is not None
        drows = dx @ matrix if ctx.needs_input_grad[0] else None
        dmatrix = dx.flatten(0, -2).mT @ rows.flatten(0, -2) if ctx.needs_input_grad[1] else None
        dscale = None if weight is None else dweight, None if bias is None else dbias
        return drows, dmatrix, torch.zeros_like(found[1]), None, *dscale, None


def _differentiable(
    dy: Tensor,
    x: Tensor,
    mask: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    settings: Settings,
) -> tuple[Tensor | None, ...]:
    present = [t for t in (x, weight, bias) if t is not None and t.requires_grad]
    y = reference.normalize(x, mask, weight, bias, settings).values
    found = iter(torch.autograd.grad(y, present, dy, create_graph=True))
    dx, dweight, dbias = (
        next(found) if t is not None and t.requires_grad else None for t in (x, weight, bias)
    )
    return dx, None, dweight, dbias, None


def _describe(x: Tensor, settings: Settings) -> Forward:
    """The struct of a call on contiguous values, without its other arrays."""
    channels, inner = settings.channels(x.shape), settings.inner or 1
    return Forward(
        x.dtype == torch.float64, native.threads(), x.numel() // (channels * inner), channels, inner,
        settings.rectified, settings.eps, settings.scale, settings.momentum, x.data_ptr(),
    )  # fmt: skip


def _contiguous(*tensors: Tensor | None) -> tuple[Tensor | None, ...]:
    return tuple(None if t is None else t.contiguous() for t in tensors)


def _forward(
    x: Tensor, mask: Tensor | None, weight: Tensor | None, bias: Tensor | None, settings: Settings
) -> Normalized:
    x, arrays = x.contiguous(), _contiguous(mask, weight, bias)
    call = _describe(x, settings)
    y, mean, variance = torch.empty_like(x), x.new_empty(call.channels), x.new_empty(call.channels)
    call.mask, call.weight, call.bias = map(native.address, arrays)
    call.y, call.mean, call.variance = y.data_ptr(), mean.data_ptr(), variance.data_ptr()
    native.run("batch_norm_forward", call)
    return Normalized(y, mean, variance)


def _backward(
    dy: Tensor,
    x: Tensor,
    mask: Tensor | None,
    weight: Tensor | None,
    found: Normalized,
    settings: Settings,
) -> tuple[Tensor, Tensor, Tensor]:
    """Derivatives by values, weight and bias; the last two are there even if these are not."""
    x, dy, arrays = x.contiguous(), dy.contiguous(), _contiguous(mask, weight)
    call = _describe(x, settings)
    call.mask, call.weight = map(native.address, arrays)
    call.y, call.mean, call.variance = map(native.address, found)
    gradients = torch.empty_like(x), torch.empty_like(found.mean), torch.empty_like(found.mean)
    native.run(
        "batch_norm_backward",
        Backward(ctypes.pointer(call), dy.data_ptr(), *map(native.address, gradients)),
    )
    return gradients
