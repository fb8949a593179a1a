"""Differences of adjacent steps on CPUs: the kernel of `csrc/difference.cpp` under autograd."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seq2tens.ops import native
from seq2tens.ops.difference import reference
from seq2tens.ops.dispatch import cpu_unsupported, is_observed


class Difference(native.Struct):
    """A call; see `csrc/seq2tens.h`."""

    name = "seq2tens_difference"
    _fields_ = (*native.fields("is_double threads batch length channels reverse"), *native.arrays("x y"))


def unsupported(x: Tensor, reverse: bool) -> str | None:
    """Return why the kernel cannot handle these arguments; None if it can."""
    if is_observed(x):
        return "torch cannot trace it; use the reference"
    if not native.supported_dtype(x):
        return "the tensor is neither float32 nor float64"
    return cpu_unsupported(x) if x.dim() == 3 else "`x` must have 3 axes"


def difference(x: Tensor, reverse: bool) -> Tensor:
    """Same signature and meaning as `reference.difference`."""
    y: Tensor = _Difference.apply(x, reverse)
    return y


class _Difference(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, reverse: bool) -> Tensor:
        ctx.reverse = reverse
        return _compute(x, reverse)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        # the adjoint is the difference in the other direction; in grad mode it will be differentiated again
        compute = reference.difference if torch.is_grad_enabled() or is_observed(dy) else _compute
        return compute(dy, not ctx.reverse), None


def _compute(x: Tensor, reverse: bool) -> Tensor:
    y = x.new_empty(x.shape)
    numbers = (x.dtype == torch.float64, native.threads(), *x.shape, reverse)
    native.run_kernel("difference_steps", Difference.of(numbers, x, y))
    return y
