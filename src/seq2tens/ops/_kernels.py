"""Fused forward and backward of the LS2T recursion, compiled by numba on first use.

A block of time steps is multiplied into a scratch that fits the cache, and scanned there. Between blocks
states are float64 whatever the input, and within a block only the change since its beginning is summed in
the input's dtype, so sums over a million steps stay accurate. The backward pass starts each block from a
state that the forward pass kept, runs it again, and walks back.

Each kernel takes one record of sizes and addresses (`CALL`), so that threads of torch can run it without
Python: a task is a range of sequences and a group of functionals.

Layout: functionals are padded to whole cache lines, `width` in all. State 0 is the empty word, whose value
is 1; `component`, `parent` and `depth` are indexed by state. Arrays are flat: state s is
h[s · width : (s + 1) · width].
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numba
import numpy as np
from numba import carray, types

from seq2tens.ops._blas import gemm, limit_threads, pointer, thread_number
from seq2tens.ops._calls import CALL
from seq2tens.ops._lanes import WIDE, add, load_wide, store
from seq2tens.ops._steps import (
    advance,
    advance_joined,
    advance_lifted,
    compiled,
    read_gradient,
    read_state,
    retreat,
    retreat_lifted,
    write_output,
    write_state,
)

callback = numba.cfunc(types.void(types.CPointer(numba.from_dtype(CALL))), cache=True)


@compiled
def memory(address, count, like):
    """The array of `count` elements at an address."""
    return carray(pointer(address, like), (count,))


@compiled
def carve(cursor, count, like):
    """An array from the scratch that begins at `cursor`, and where the next one begins: at a cache line."""
    array = memory(cursor, count, like)
    return array, cursor + (count * array.itemsize + 63) // 64 * 64


@compiled
def project(r, x_address, steps, w, a):
    """Inner products of a block of steps with every vector, a row of `a` per step; the bias comes later."""
    columns = r.components * r.group_width
    gemm(r.gemm, 0, 0, steps, columns, r.features, x_address, r.features, w, columns, a.dtype.type(0),
         a.ctypes.data, columns)  # fmt: skip


@compiled
def load_block(r, x, mask, low, steps, rows):
    """Address of a block of steps; with a mask, of a copy with zeros at masked ones, which may hold NaN."""
    if not r.has_mask:
        return x.ctypes.data + low * r.features * x.itemsize
    for t in range(steps):
        for k in range(r.features):
            rows[t * r.features + k] = x[(low + t) * r.features + k] if mask[low + t] else 0
    return rows.ctypes.data


@compiled
def chain_arrays(r):
    """Component, parent and depth of every state; runs of states; the state of every level."""
    like = np.int64(0)
    return (
        memory(r.component, r.states, like),
        memory(r.parent, r.states, like),
        memory(r.depth, r.states, like),
        memory(r.runs, r.run_count * 4, like).reshape(r.run_count, 4),
        memory(r.output, r.levels, like),
    )


@compiled
def block_bounds(r, index):
    """Number of steps of a block and the first of them in memory; blocks count as the scan meets them."""
    steps = min(r.block, r.length - index * r.block)
    return steps, r.length - index * r.block - steps if r.reverse else index * r.block


@compiled
def scan_block(
    r, h, path, a, first, bias, steps, mask, low, component, parent, depth, runs, coefficients, powers,
    change, base, out, position, output, count, sequences,
):  # fmt: skip
    """Run one block from state h, which becomes the state after it.

    The state after i steps goes to row i of `path`, modulo its number of rows: two are enough to go forwards.
    Its inner products are those from row `first` of `a` on. With `sequences` the levels go to `out`, those of
    the block's first step to `position`.
    """
    size, width, columns = h.shape[0], r.group_width, bias.shape[0]
    new = 0
    path[:size] = h
    base[:] = h
    change[:] = 0
    for i in range(steps):
        t = steps - 1 - i if r.reverse else i
        old, new = new, new + size
        if new == path.shape[0]:
            new = 0
        if r.has_mask and not mask[low + t]:
            path[new : new + size] = path[old : old + size]
        elif r.lifted:
            advance_lifted(
                h, a, (first + t) * columns, bias, component, parent, depth, coefficients, powers, width
            )
            path[new : new + size] = h
        else:
            advance(path, old, new, change, base, a, (first + t) * columns, bias, runs)
        if sequences:
            row = position + t * r.levels * r.width
            write_output(path, new, out, row, r.width, output, count, width)
    if not r.lifted:
        close_block(h, change, width)


@compiled
def scan_joined(r, h, a, first, bias, steps, change, base, out, position, initial):
    """`scan_block` for one plain chain without mask: levels are written to `out` and read again there."""
    width = r.group_width
    stride = bias.shape[0]
    for q in range(stride):
        initial[q] = h[width + q]
    base[:] = h
    change[:] = 0
    source, old = initial, 0
    for i in range(steps):
        t = steps - 1 - i if r.reverse else i
        new = position + t * stride
        advance_joined(source, old, out, new, change, base, a, (first + t) * stride, bias, width)
        source, old = out, new
    close_block(h, change, width)


@compiled
def close_block(h, change, width):
    """Add what has changed since the block began."""
    for q in range(width, h.shape[0]):
        h[q] += change[q]


@compiled
def forward(r, zero):
    """All tasks of this thread; `zero` is of the input's dtype."""
    columns, width, wide = r.components * r.group_width, r.group_width, np.float64(0)
    size = r.states * width
    component, parent, depth, runs, output = chain_arrays(r)
    coefficients = memory(r.coefficients, r.lift_order, wide)
    mask = memory(r.mask, r.batch * r.length if r.has_mask else 0, np.uint8(0))
    x, out = memory(r.x, r.batch * r.length * r.features, zero), memory(r.out, r.out_size, zero)
    state, final = memory(r.state, r.state_size, zero), memory(r.final, r.state_size, zero)
    kept = memory(r.kept, r.kept_size, wide)
    thread = thread_number(r.thread_number) if r.thread_number else r.thread
    a, cursor = carve(r.scratch + thread * r.scratch_size, r.block * columns, zero)
    path, cursor = carve(cursor, 2 * size, zero)
    rows, cursor = carve(cursor, r.block * r.features if r.has_mask else 0, zero)
    h, cursor = carve(cursor, size, wide)
    base, cursor = carve(cursor, size, zero)
    change, cursor = carve(cursor, size, zero)
    path[:] = 1
    before = limit_threads(r.limit_threads, 1) if r.limit_threads else 0
    for task in range(thread, r.tasks, r.threads):
        group = task // r.slices
        start = group * width
        count = min(width, r.width - start)
        w = r.weight + group * r.features * columns * x.itemsize
        bias = memory(r.bias + group * columns * x.itemsize, columns, zero)
        powers = memory(r.powers + group * r.power_size * 8, r.power_size if r.lifted else 0, wide)
        last = r.batch * (task % r.slices + 1) // r.slices
        for b in range(r.batch * (task % r.slices) // r.slices, last, r.together):
            number = min(r.together, last - b)  # short sequences share a matrix product
            for index in range(r.blocks):
                steps, low = block_bounds(r, index)
                low += b * r.length
                project(r, load_block(r, x, mask, low, number * steps, rows), number * steps, w, a)
                for k in range(number):
                    place = (b + k) * (r.states - 1) * r.width + start
                    if index == 0:
                        read_state(h, state, place, r.width, count, width)
                        h[:width] = 1
                    if r.keep:
                        position = ((b + k) * r.blocks + index) * (r.states - 1) * r.width + start
                        write_state(h, kept, position, r.width, count, width)
                    here = low + k * r.length
                    position = here * r.levels * r.width + start
                    if r.joined:
                        scan_joined(r, h, a, k * steps, bias, steps, change, base, out, position, path)
                    else:
                        scan_block(
                            r, h, path, a, k * steps, bias, steps, mask, here, component, parent, depth, runs,
                            coefficients, powers, change, base, out, position, output, count, r.sequences,
                        )  # fmt: skip
                    if index == r.blocks - 1:
                        write_state(h, final, place, r.width, count, width)
    if r.limit_threads:
        limit_threads(r.limit_threads, before)


@compiled
def retrace_block(
    r, adjoint, path, a, da, first, bias, steps, mask, low, component, parent, depth, runs, coefficients,
    powers, dcoefficients, dpowers, tail, line, dout, start, output, count,
):  # fmt: skip
    """Walk back through the block that `scan_block` left in `path`."""
    size, width, columns = adjoint.shape[0], r.group_width, bias.shape[0]
    for i in range(steps - 1, -1, -1):
        t = steps - 1 - i if r.reverse else i
        if r.sequences:
            position = (low + t) * r.levels * r.width + start
            read_gradient(adjoint, dout, position, r.width, output, count, width)
        if r.has_mask and not mask[low + t]:
            continue
        row = (first + t) * columns
        if r.lifted:
            retreat_lifted(
                adjoint, path[i * size : (i + 1) * size], a, da, row, bias, component, parent, depth,
                coefficients, powers, dcoefficients, dpowers, width, tail, line,
            )  # fmt: skip
        else:
            retreat(adjoint, path, i * size, a, da, row, bias, runs, r.shared)


@compiled
def backward(r, zero):
    """Adjoint of `forward`. What is summed over sequences goes to the task's own part of the arrays."""
    columns, width, wide = r.components * r.group_width, r.group_width, np.float64(0)
    size = r.states * width
    component, parent, depth, runs, output = chain_arrays(r)
    coefficients = memory(r.coefficients, r.lift_order, wide)
    mask = memory(r.mask, r.batch * r.length if r.has_mask else 0, np.uint8(0))
    x, dout = memory(r.x, r.batch * r.length * r.features, zero), memory(r.out, r.out_size, zero)
    dstate, dfinal = memory(r.state, r.state_size, zero), memory(r.final, r.state_size, zero)
    kept = memory(r.kept, r.kept_size, wide)
    thread = thread_number(r.thread_number) if r.thread_number else r.thread
    a, cursor = carve(r.scratch + thread * r.scratch_size, r.block * columns, zero)
    path, cursor = carve(cursor, (r.block + 1) * size, zero)
    rows, cursor = carve(cursor, r.block * r.features if r.has_mask else 0, zero)
    h, cursor = carve(cursor, size, wide)
    base, cursor = carve(cursor, size, zero)
    change, cursor = carve(cursor, size, zero)
    da, cursor = carve(cursor, r.block * columns, zero)
    adjoint, cursor = carve(cursor, size, wide)
    tail, cursor = carve(cursor, r.lift_order * WIDE, wide)
    line, cursor = carve(cursor, r.lift_order + 1, np.int64(0))
    path[:] = 1
    before = limit_threads(r.limit_threads, 1) if r.limit_threads else 0
    one = x.dtype.type(1)
    for task in range(thread, r.tasks, r.threads):
        group = task // r.slices
        start = group * width
        count = min(width, r.width - start)
        w = r.weight + group * r.features * columns * x.itemsize
        bias = memory(r.bias + group * columns * x.itemsize, columns, zero)
        powers = memory(r.powers + group * r.power_size * 8, r.power_size if r.lifted else 0, wide)
        dx = r.dx + group * r.batch * r.length * r.features * x.itemsize
        dw = r.dweight + task * r.features * columns * x.itemsize
        dbias = memory(r.dbias + task * columns * 8, columns, wide)
        dcoefficients = memory(r.dcoefficients + task * r.lift_order * width * 8, r.lift_order * width, wide)
        dpowers = memory(r.dpowers + task * r.power_size * 8, r.power_size, wide)
        last = r.batch * (task % r.slices + 1) // r.slices
        for b in range(r.batch * (task % r.slices) // r.slices, last, r.together):
            number = min(r.together, last - b)
            for index in range(r.blocks - 1, -1, -1):
                steps, low = block_bounds(r, index)
                low += b * r.length
                total = number * steps
                address = load_block(r, x, mask, low, total, rows)
                project(r, address, total, w, a)
                if r.shared or r.lifted or r.has_mask:
                    da[: total * columns] = 0
                for k in range(number):
                    place = (b + k) * (r.states - 1) * r.width + start
                    if index == r.blocks - 1:
                        read_state(adjoint, dfinal, place, r.width, count, width)
                    position = ((b + k) * r.blocks + index) * (r.states - 1) * r.width + start
                    read_state(h, kept, position, r.width, count, width)
                    h[:width] = 1
                    here = low + k * r.length
                    scan_block(
                        r, h, path, a, k * steps, bias, steps, mask, here, component, parent, depth, runs,
                        coefficients, powers, change, base, dout, 0, output, count, False,
                    )  # fmt: skip
                    retrace_block(
                        r, adjoint, path, a, da, k * steps, bias, steps, mask, here, component, parent, depth,
                        runs, coefficients, powers, dcoefficients, dpowers, tail, line, dout, start, output,
                        count,
                    )  # fmt: skip
                    if index == 0:
                        write_state(adjoint, dstate, place, r.width, count, width)
                gemm(r.gemm, 0, 1, total, r.features, columns, da.ctypes.data, columns, w, columns, zero,
                     dx + low * r.features * x.itemsize, r.features)  # fmt: skip
                gemm(r.gemm, 1, 0, r.features, columns, total, address, r.features, da.ctypes.data, columns,
                     one, dw, columns)  # fmt: skip
                if r.has_bias:
                    for t in range(total):
                        for q in range(0, columns, WIDE):
                            store(dbias, q, add(load_wide(dbias, q), load_wide(da, t * columns + q)))
    if r.limit_threads:
        limit_threads(r.limit_threads, before)


# Entry points for other threads: C functions of one record. They stand in this file because numba looks at
# the file of a compiled function, and at no other, to see whether the code on disk is out of date. Each is
# compiled when it is first asked for, hence the functions around them.


@lru_cache(maxsize=4)
def entry(name: str) -> Any:
    """The compiled `forward32`, `forward64`, `backward32` or `backward64`."""
    return globals()[f"_{name}"]()


def _forward32() -> Any:
    @callback
    def forward32(call):
        forward(carray(call, (1,))[0], np.float32(0))

    return forward32


def _forward64() -> Any:
    @callback
    def forward64(call):
        forward(carray(call, (1,))[0], np.float64(0))

    return forward64


def _backward32() -> Any:
    @callback
    def backward32(call):
        backward(carray(call, (1,))[0], np.float32(0))

    return backward32


def _backward64() -> Any:
    @callback
    def backward64(call):
        backward(carray(call, (1,))[0], np.float64(0))

    return backward64
