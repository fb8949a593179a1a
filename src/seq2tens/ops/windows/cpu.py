"""All windows on CPUs: the kernel of `csrc/windows.cpp`."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from seq2tens.ops import accumulation_dtype, native
from seq2tens.ops.heap import use_huge_pages
from seq2tens.ops.ls2t import Functionals
from seq2tens.ops.subwords import SubwordArrays, subword_arrays


class Windows(native.Struct):
    """A call of the kernel; see `csrc/seq2tens.h`."""

    name = "seq2tens_windows"
    _fields_ = (
        *native.fields("is_double threads batch length features components width window stride lift_order"),
        ("subwords", ctypes.POINTER(SubwordArrays)),
        *native.arrays("x weight bias coefficients mask out"),
    )


def slide(functionals: Functionals, x: Tensor, mask: Tensor | None, window: int, stride: int) -> Tensor:
    """Same signature and meaning as `reference.slide`."""
    dtype = accumulation_dtype(x, functionals.weight)
    x, weight = x.to(dtype), functionals.weight.to(dtype)
    bias = None if functionals.bias is None else functionals.bias.to(dtype)
    lift = _lift(functionals.coefficients)
    (batch, length, features), (components, _, width) = x.shape, weight.shape
    windows = -(-(length - window + 1) // stride)
    out = torch.empty(batch, windows, len(functionals.chains.output), width, dtype=dtype)
    use_huge_pages(out)
    numbers = (
        dtype == torch.float64, native.threads(), batch, length, features, components, width,
        window, stride, 1 if lift is None else len(lift), ctypes.pointer(subword_arrays(functionals.chains)),
    )  # fmt: skip
    native.run_kernel("slide_windows", Windows.of(numbers, x, weight, bias, lift, mask, out))
    return out


def _lift(coefficients: Tensor | None) -> Tensor | None:
    """Return the lift coefficients for the kernel, None for the plain recursion."""
    if coefficients is None or coefficients.tolist() == [1.0]:
        return None
    return coefficients.double()
