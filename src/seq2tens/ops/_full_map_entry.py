"""Entry points of the full map for torch's threads: C functions of one record, one for each pass and dtype.

Each is compiled when it is first asked for, hence the functions around them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import carray

from seq2tens.ops._full_map_kernels import backward, backward_long, forward, forward_long
from seq2tens.ops._kernel_tools import callback, carve, compiled, limit_products, memory, this_thread
from seq2tens.ops.full_map import CALL

as_callback = callback(CALL)


@lru_cache(maxsize=4)
def entry(name: str) -> Any:
    """The compiled `forward32`, `forward64`, `backward32` or `backward64`."""
    return globals()[f"_{name}"]()


@compiled
def run_forward(r: Any, like: Any) -> None:
    """This thread's tasks: each is a range of groups of sequences."""
    x, c = memory(r.x, (r.batch, r.points, r.dim), like), memory(r.coefficients, (r.lift_order,), 0.0)
    starts, words = memory(r.starts, (r.order + 2,), 0), memory(r.words, (r.size,), 0)
    out = memory(r.out, (r.batch, r.rows, r.size), like)
    kept = memory(r.kept, (r.groups, r.blocks, r.lower * r.lanes), 0.0)
    thread = this_thread(r)
    scratch, at = carve(r.scratch + thread * r.scratch_size, (r.numbers,), 0.0)
    narrow, at = carve(at, (r.block * r.dim,), like)
    h, at = carve(at, (r.block, r.last), like)
    sums = memory(at, (r.dim * r.last,), like)
    before = limit_products(r, 1)
    for task in range(thread, r.tasks, r.threads):
        for group in range(r.groups * task // r.tasks, r.groups * (task + 1) // r.tasks):
            a, b = group * r.lanes, min(r.batch, (group + 1) * r.lanes)
            shared = x[a:b], c, starts, words, out[a:b], kept[group], scratch
            if r.long:
                forward_long(*shared, narrow, h, sums, r.block, r.increments, r.gemm)
            else:
                forward(*shared, r.lanes, r.block, r.sequences, r.increments)
    limit_products(r, before)


@compiled
def run_backward(r: Any, like: Any) -> None:
    """The same for the adjoint: `out` and `kept` are read, `dc` has `learn` numbers for each group."""
    x, c = memory(r.x, (r.batch, r.points, r.dim), like), memory(r.coefficients, (r.lift_order,), 0.0)
    starts, words = memory(r.starts, (r.order + 2,), 0), memory(r.words, (r.size,), 0)
    dout = memory(r.out, (r.batch, r.rows, r.size), like)
    kept = memory(r.kept, (r.groups, r.blocks, r.lower * r.lanes), 0.0)
    dx = memory(r.dx, (r.batch, r.points, r.dim), like)
    dc = memory(r.dc, (r.groups, r.learn), 0.0)
    thread = this_thread(r)
    scratch, at = carve(r.scratch + thread * r.scratch_size, (r.numbers,), 0.0)
    narrow, at = carve(at, (r.block * r.dim,), like)
    h, at = carve(at, (r.block, r.last), like)
    dh, at = carve(at, (r.block, r.last), like)
    top = memory(at, (r.dim * r.last,), like)
    before = limit_products(r, 1)
    for task in range(thread, r.tasks, r.threads):
        for group in range(r.groups * task // r.tasks, r.groups * (task + 1) // r.tasks):
            a, b = group * r.lanes, min(r.batch, (group + 1) * r.lanes)
            shared = x[a:b], c, starts, words, dout[a:b], kept[group], dx[a:b], dc[group], scratch
            if r.long:
                backward_long(*shared, narrow, h, dh, top, r.block, r.increments, r.gemm)
            else:
                backward(*shared, r.lanes, r.block, r.sequences, r.increments)
    limit_products(r, before)


def _forward32() -> Any:
    @as_callback
    def full_map_forward32(call: Any) -> None:
        run_forward(carray(call, (1,))[0], np.float32(0))

    return full_map_forward32


def _forward64() -> Any:
    @as_callback
    def full_map_forward64(call: Any) -> None:
        run_forward(carray(call, (1,))[0], np.float64(0))

    return full_map_forward64


def _backward32() -> Any:
    @as_callback
    def full_map_backward32(call: Any) -> None:
        run_backward(carray(call, (1,))[0], np.float32(0))

    return full_map_backward32


def _backward64() -> Any:
    @as_callback
    def full_map_backward64(call: Any) -> None:
        run_backward(carray(call, (1,))[0], np.float64(0))

    return full_map_backward64
