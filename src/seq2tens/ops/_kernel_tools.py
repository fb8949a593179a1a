"""What numba kernels share: how they are compiled, arrays at addresses, and the thread they run in.

A kernel's record `r` has the fields `threads`, `thread` and `thread_number`; one that multiplies matrices has
`limit_threads`, too.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import carray, types

from seq2tens.ops._blas import limit_threads, pointer, thread_number

compiled = numba.njit(nogil=True, cache=True, error_model="numpy")


def callback(record: np.dtype) -> Any:
    """Decorator of a C function of one record, compiled once."""
    return numba.cfunc(types.void(types.CPointer(numba.from_dtype(record))), cache=True)


@compiled
def memory(address, shape, like):
    """The array of numbers like `like` at an address."""
    return carray(pointer(address, like), shape)


@compiled
def bytes_of(like):
    """How many bytes a number takes."""
    return memory(0, 0, like).itemsize


@compiled
def carve(cursor, shape, like):
    """An array from the scratch that begins at `cursor`, and where the next one begins: at a cache line."""
    array = memory(cursor, shape, like)
    return array, cursor + (array.size * array.itemsize + 63) // 64 * 64


@compiled
def this_thread(r):
    """Which of its team this thread is."""
    return thread_number(r.thread_number) if r.thread_number else r.thread


@compiled
def limit_products(r, threads):
    """Give matrix products of this thread so many threads; returns how many they had."""
    return limit_threads(r.limit_threads, threads) if r.limit_threads else 0


@compiled
def copy(source, target):
    """An assignment to a slice would look for overlaps first, which takes longer than to copy a row."""
    for q in range(source.shape[0]):
        target[q] = source[q]


@compiled
def add_row(sums, row):
    for q in range(sums.shape[0]):
        sums[q] += row[q]
