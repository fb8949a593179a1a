"""What lies outside of a stack with shortcuts: the mean over time and two linear maps, forward and backward,
compiled by numba on first use.

Near sequences have `channels`, those that the first shortcut begins with `features`, what leaves the stack
`end` numbers. A task is a range of sequences.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import carray

from seq2tens.ops._blas import gemm
from seq2tens.ops._kernel_tools import (
    add_row,
    bytes_of,
    callback,
    compiled,
    limit_products,
    memory,
    this_thread,
)

_SIZES = "batch length channels features end tasks masked"
_ARRAYS = "near mask x matrix beside pooled end_matrix around"
_GRADIENTS = "dnear dbeside daround dpooled dmatrix dshift dend_matrix dend_shift"
_THREADS = "scratch scratch_size threads thread thread_number gemm limit_threads"
FIELDS = " ".join((_SIZES, _ARRAYS, _GRADIENTS, _THREADS)).split()
CALL = np.dtype([(name, np.int64) for name in FIELDS])
AT = {name: position for position, name in enumerate(FIELDS)}

as_callback = callback(CALL)


@compiled
def add_share(row, whole, share):
    for q in range(row.shape[0]):
        row[q] += whole[q] * share


@compiled
def steps_of(r, mask, b):
    """How many steps of a sequence count; they come first."""
    count = r.length
    while r.masked and count > 0 and not mask[b * r.length + count - 1]:
        count -= 1
    return count


@compiled
def forward(r, zero):
    """Means over time of what is near, and both linear maps; `zero` is of the input's dtype."""
    n, itemsize = r.channels, bytes_of(zero)
    near, pooled = memory(r.near, r.batch * r.length * n, zero), memory(r.pooled, r.batch * n, zero)
    mask = memory(r.mask, r.batch * r.length if r.masked else 0, np.uint8(0))
    thread = this_thread(r)
    sums = memory(r.scratch + thread * r.scratch_size, n, np.float64(0))
    before = limit_products(r, 1)
    for task in range(thread, r.tasks, r.threads):
        low, high = r.batch * task // r.tasks, r.batch * (task + 1) // r.tasks
        for b in range(low, high):
            sums[:] = 0
            count = steps_of(r, mask, b)
            for row in range(b * r.length, b * r.length + count):
                add_row(sums, near[row * n : (row + 1) * n])
            for q in range(n):
                pooled[b * n + q] = sums[q] / max(count, 1)
        first, rows = low * r.length, (high - low) * r.length
        gemm(r.gemm, 0, 1, rows, n, r.features, r.x + first * r.features * itemsize, r.features, r.matrix,
             r.features, zero, r.beside + first * n * itemsize, n)  # fmt: skip
        gemm(r.gemm, 0, 1, high - low, r.end, n, r.pooled + low * n * itemsize, n, r.end_matrix, n, zero,
             r.around + low * r.end * itemsize, r.end)  # fmt: skip
    limit_products(r, before)


@compiled
def backward(r, zero):
    """Adjoint of `forward`; what comes by way of the mean is added to `dnear`. Shifts have no influence."""
    n, itemsize = r.channels, bytes_of(zero)
    dnear, dpooled = memory(r.dnear, r.batch * r.length * n, zero), memory(r.dpooled, r.batch * n, zero)
    mask = memory(r.mask, r.batch * r.length if r.masked else 0, np.uint8(0))
    thread = this_thread(r)
    before = limit_products(r, 1)
    for task in range(thread, r.tasks, r.threads):
        low, high = r.batch * task // r.tasks, r.batch * (task + 1) // r.tasks
        gemm(r.gemm, 0, 0, high - low, n, r.end, r.daround + low * r.end * itemsize, r.end, r.end_matrix, n,
             zero, r.dpooled + low * n * itemsize, n)  # fmt: skip
        for b in range(low, high):
            count = steps_of(r, mask, b)
            share, whole = dnear.dtype.type(1 / max(count, 1)), dpooled[b * n : (b + 1) * n]
            for row in range(b * r.length, b * r.length + count):
                add_share(dnear[row * n : (row + 1) * n], whole, share)
        if task == 0:
            gemm(r.gemm, 1, 0, n, r.features, r.batch * r.length, r.dbeside, n, r.x, r.features, zero,
                 r.dmatrix, r.features)  # fmt: skip
            memory(r.dshift, n, zero)[:] = 0
        if task == r.tasks - 1:
            gemm(r.gemm, 1, 0, r.end, n, r.batch, r.daround, r.end, r.pooled, n, zero, r.dend_matrix, n)
            memory(r.dend_shift, r.end, zero)[:] = 0
    limit_products(r, before)


@lru_cache(maxsize=4)
def entry(name: str) -> Any:
    """The compiled `forward32`, `forward64`, `backward32` or `backward64`, as C functions of one record."""
    return globals()[f"_{name}"]()


def _forward32() -> Any:
    @as_callback
    def forward32(call):
        forward(carray(call, (1,))[0], np.float32(0))

    return forward32


def _forward64() -> Any:
    @as_callback
    def forward64(call):
        forward(carray(call, (1,))[0], np.float64(0))

    return forward64


def _backward32() -> Any:
    @as_callback
    def backward32(call):
        backward(carray(call, (1,))[0], np.float32(0))

    return backward32


def _backward64() -> Any:
    @as_callback
    def backward64(call):
        backward(carray(call, (1,))[0], np.float64(0))

    return backward64
