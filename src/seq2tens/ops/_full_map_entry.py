"""Entry points of the full map for torch's threads: C functions of one record, one for each pass and dtype.

Each is compiled when it is first asked for, hence the functions around them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numba
import numpy as np
from numba import carray, types

from seq2tens.ops._blas import limit_threads, pointer, thread_number
from seq2tens.ops._full_map_kernels import backward, backward_long, forward, forward_long
from seq2tens.ops._full_map_steps import compiled
from seq2tens.ops.full_map import CALL

callback = numba.cfunc(types.void(types.CPointer(numba.from_dtype(CALL))), cache=True)


@lru_cache(maxsize=4)
def entry(name: str) -> Any:
    """The compiled `forward32`, `forward64`, `backward32` or `backward64`."""
    return globals()[f"_{name}"]()


@compiled
def array(address: Any, shape: Any, like: Any) -> Any:
    """What lies at an address, as an array of numbers like `like`."""
    return carray(pointer(address, like), shape)


@compiled
def piece(address: Any, shape: Any, like: Any) -> Any:
    """An array at an address, and the next cache line after it."""
    found = array(address, shape, like)
    return found, address + (found.size * found.itemsize + 63) // 64 * 64


@compiled
def run_forward(r: Any, like: Any) -> None:
    """This thread's tasks: each is a range of groups of sequences."""
    x, c = array(r.x, (r.batch, r.points, r.dim), like), array(r.coefficients, (r.lift_order,), 0.0)
    starts, words = array(r.starts, (r.order + 2,), 0), array(r.words, (r.size,), 0)
    out = array(r.out, (r.batch, r.rows, r.size), like)
    kept = array(r.kept, (r.groups, r.blocks, r.lower * r.lanes), 0.0)
    thread = thread_number(r.thread_number) if r.thread_number else r.thread
    scratch, at = piece(r.scratch + thread * r.scratch_size, (r.numbers,), 0.0)
    narrow, at = piece(at, (r.block * r.dim,), like)
    h, at = piece(at, (r.block, r.last), like)
    sums = array(at, (r.dim * r.last,), like)
    before = limit_threads(r.limit_threads, 1) if r.limit_threads else 0
    for task in range(thread, r.tasks, r.threads):
        for group in range(r.groups * task // r.tasks, r.groups * (task + 1) // r.tasks):
            a, b = group * r.lanes, min(r.batch, (group + 1) * r.lanes)
            shared = x[a:b], c, starts, words, out[a:b], kept[group], scratch
            if r.long:
                forward_long(*shared, narrow, h, sums, r.block, r.increments, r.gemm)
            else:
                forward(*shared, r.lanes, r.block, r.sequences, r.increments)
    if r.limit_threads:
        limit_threads(r.limit_threads, before)


@compiled
def run_backward(r: Any, like: Any) -> None:
    """The same for the adjoint: `out` and `kept` are read, `dc` has `learn` numbers for each group."""
    x, c = array(r.x, (r.batch, r.points, r.dim), like), array(r.coefficients, (r.lift_order,), 0.0)
    starts, words = array(r.starts, (r.order + 2,), 0), array(r.words, (r.size,), 0)
    dout = array(r.out, (r.batch, r.rows, r.size), like)
    kept = array(r.kept, (r.groups, r.blocks, r.lower * r.lanes), 0.0)
    dx = array(r.dx, (r.batch, r.points, r.dim), like)
    dc = array(r.dc, (r.groups, r.learn), 0.0)
    thread = thread_number(r.thread_number) if r.thread_number else r.thread
    scratch, at = piece(r.scratch + thread * r.scratch_size, (r.numbers,), 0.0)
    narrow, at = piece(at, (r.block * r.dim,), like)
    h, at = piece(at, (r.block, r.last), like)
    dh, at = piece(at, (r.block, r.last), like)
    top = array(at, (r.dim * r.last,), like)
    before = limit_threads(r.limit_threads, 1) if r.limit_threads else 0
    for task in range(thread, r.tasks, r.threads):
        for group in range(r.groups * task // r.tasks, r.groups * (task + 1) // r.tasks):
            a, b = group * r.lanes, min(r.batch, (group + 1) * r.lanes)
            shared = x[a:b], c, starts, words, dout[a:b], kept[group], dx[a:b], dc[group], scratch
            if r.long:
                backward_long(*shared, narrow, h, dh, top, r.block, r.increments, r.gemm)
            else:
                backward(*shared, r.lanes, r.block, r.sequences, r.increments)
    if r.limit_threads:
        limit_threads(r.limit_threads, before)


def _forward32() -> Any:
    @callback
    def full_map_forward32(call: Any) -> None:
        run_forward(carray(call, (1,))[0], np.float32(0))

    return full_map_forward32


def _forward64() -> Any:
    @callback
    def full_map_forward64(call: Any) -> None:
        run_forward(carray(call, (1,))[0], np.float64(0))

    return full_map_forward64


def _backward32() -> Any:
    @callback
    def full_map_backward32(call: Any) -> None:
        run_backward(carray(call, (1,))[0], np.float32(0))

    return full_map_backward32


def _backward64() -> Any:
    @callback
    def full_map_backward64(call: Any) -> None:
        run_backward(carray(call, (1,))[0], np.float64(0))

    return full_map_backward64
