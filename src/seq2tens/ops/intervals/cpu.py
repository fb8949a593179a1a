"""Look-up of intervals in the tables on CPUs: the kernel of `csrc/intervals.cpp`."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from seq2tens.ops import native
from seq2tens.ops.chains import Chains
from seq2tens.ops.heap import use_huge_pages
from seq2tens.ops.intervals.parts import Parts, Rows
from seq2tens.ops.subwords import SubwordArrays, subword_arrays


class Intervals(native.Struct):
    """A call of the kernel; see `csrc/seq2tens.h`."""

    name = "seq2tens_intervals"
    _fields_ = (
        *native.fields("is_double threads count width nothing"),
        ("subwords", ctypes.POINTER(SubwordArrays)),
        *native.arrays("ends stretches beginnings end left right beginning out"),
    )


def look_up(parts: Parts, rows: Rows, chains: Chains) -> Tensor:
    """Same signature and meaning as `reference.look_up`."""
    dtype, width, count = parts.ends.dtype, parts.ends.shape[2], len(rows.end)
    out = torch.empty(count, len(chains.output), width, dtype=dtype)
    use_huge_pages(out)
    sizes = (count, width, len(parts.stretches) - 1)
    numbers = (dtype == torch.float64, native.threads(), *sizes, ctypes.pointer(subword_arrays(chains)))
    native.run_kernel("join_intervals", Intervals.of(numbers, *parts, *rows, out))
    return out
