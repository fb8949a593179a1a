"""Convolution on CPUs: the kernels of `csrc/convolution.cpp` under autograd."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from seq2tens._checks import require
from seq2tens.ops import native
from seq2tens.ops.convolution import reference
from seq2tens.ops.convolution.reference import Convolution
from seq2tens.ops.dispatch import cpu_unsupported, is_observed, reference_gradients

PANEL = 32  # packed weights have a multiple of this number of outputs


class Forward(native.Struct):
    """A forward pass; see `csrc/seq2tens.h`."""

    name = "seq2tens_convolution"
    _fields_ = (
        *native.fields("is_double threads batch length in_features out_features kernel before after"),
        *native.arrays("mask x weight bias packed y"),
    )


class Backward(native.Struct):
    """A backward pass; see `csrc/seq2tens.h`."""

    name = "seq2tens_convolution_gradients"
    _fields_ = native.fields("call", ctypes.POINTER(Forward)) + native.arrays("y x weight bias")


def unsupported(call: Convolution) -> str | None:
    """Return why the kernels cannot handle these arguments; None if they can."""
    x, weight, bias, mask, padding, _ = call
    if is_observed(x):
        return "torch cannot trace it; use the reference"
    if torch.is_autocast_enabled("cpu"):
        return "autocast requests half precision"
    tensors = [t for t in (x, weight, bias) if t is not None]
    if not native.supported_dtype(*tensors):
        return "the tensors have half precision or several dtypes"
    if x.dim() != 3 or not _match(weight, bias) or x.shape[2] != weight.shape[1]:
        return "the shapes do not match"
    if mask is not None and (mask.shape != x.shape[:2] or mask.dtype != torch.bool):
        return "the mask is not a boolean for each step"
    if min(padding) < 0:
        return "the padding is negative"
    if x.shape[1] + sum(padding) < weight.shape[2] or 0 in (x.numel(), weight.numel()):
        return "the result would be empty"
    if mask is not None:
        tensors.append(mask)
    return cpu_unsupported(*tensors)


def convolve(call: Convolution) -> Tensor:
    """Same meaning as `reference.convolve`."""
    y: Tensor = _Convolve.apply(*call)
    return y


class _Convolve(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        mask: Tensor | None,
        padding: tuple[int, int],
        train_bias: bool,
    ) -> Tensor:
        call = _describe(Convolution(x, weight, bias, mask, padding))
        steps = call.length + sum(padding) - call.kernel + 1
        y = x.new_empty(call.batch, steps, call.out_features)
        call.y = y.data_ptr()
        native.run_kernel("convolution_forward", call)
        ctx.save_for_backward(x, weight, bias, mask)
        ctx.padding, ctx.train_bias = padding, train_bias
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias, mask = ctx.saved_tensors
        inputs = Convolution(x, weight, bias, mask, ctx.padding, ctx.train_bias)
        if torch.is_grad_enabled():  # will be differentiated again, for which there is no kernel
            return reference_gradients(
                lambda *arguments: reference.convolve(Convolution(*arguments)), inputs, dy
            )
        call = _describe(inputs)
        dweight = weight.new_empty(weight.shape)
        dx = x.new_empty(x.shape) if ctx.needs_input_grad[0] else None
        dbias = None if bias is None else torch.zeros_like(bias)
        gradients = (dx, dweight, dbias if ctx.train_bias else None)
        native.run_kernel("convolution_backward", Backward.of([ctypes.pointer(call)], dy, *gradients))
        return dx, dweight, dbias, None, None, None


def _describe(call: Convolution) -> Forward:
    """Return the struct of a call, without the address of its result."""
    x, weight, bias, mask, padding, _ = call
    out_features, _, kernel = weight.shape
    numbers = (x.dtype == torch.float64, native.threads(), *x.shape, out_features, kernel, *padding)
    return Forward.of(numbers, mask, x, weight, bias)


def prepare_unsupported(weight: Tensor, bias: Tensor | None) -> str | None:
    """Return why `prepare` cannot handle these arguments; None if it can."""
    tensors = [weight] if bias is None else [weight, bias]
    if not native.supported_dtype(*tensors):
        return "the tensors have half precision or several dtypes"
    if not _match(weight, bias) or weight.numel() == 0:
        return "the shapes do not match"
    return cpu_unsupported(*tensors)


def _match(weight: Tensor, bias: Tensor | None) -> bool:
    return weight.dim() == 3 and (bias is None or bias.shape == weight.shape[:1])


def prepare(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    """Same meaning as `reference.prepare`; the weights are packed once."""
    out_features, in_features, kernel = weight.shape
    packed = weight.new_empty(-(-out_features // PANEL) * PANEL, in_features, kernel)
    sizes = (weight.dtype == torch.float64, 1, 0, kernel, in_features, out_features, kernel, 0, 0)
    template = Forward.of(sizes, None, None, weight, bias, packed)
    native.run_kernel("convolution_pack", template)

    def run(x: Tensor) -> Tensor:
        x = x.to(weight.dtype).contiguous()
        batch, length, channels = x.shape
        require(channels == in_features, f"`x` must have {in_features} channels, got {channels}")
        y = x.new_empty(batch, length - kernel + 1, out_features)
        call = Forward.from_buffer_copy(template)
        call.threads, call.batch, call.length = native.threads(), batch, length
        call.x, call.y = native.addresses(x, y)
        native.run_kernel("convolution_forward", call)
        return y

    return run
