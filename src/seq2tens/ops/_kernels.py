"""Fused forward and backward of the LS2T recursion, compiled by numba on first use.

A block of time steps is multiplied into a scratch that fits the cache, and scanned there. Between blocks
states are float64 whatever the input, and within a block only the change since its beginning is summed in
the input's dtype, so sums over a million steps stay accurate. The backward pass starts each block from a
state that the forward pass kept, runs it again, and walks back. Where there is memory for the `products` of
all blocks and there is one group of functionals, the backward pass need not multiply again.

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
from seq2tens.ops._blocks import add_rows, retrace_block, retrace_joined, scan_block, scan_joined
from seq2tens.ops._calls import CALL
from seq2tens.ops._lanes import WIDE, fence
from seq2tens.ops._levels import write_rows
from seq2tens.ops._steps import compiled, read_state, write_state

# Results of more bytes than these will not be found in a cache again. They are written past the caches, which
# need not be filled first; matrix products cannot do so, and are written in place up to a larger size.
LARGE = 16 * 2**20
LARGE_IN_PLACE = 128 * 2**20

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
def project(r, x_address, steps, w, a, first):
    """Inner products of a block of steps with every vector, in rows of `a`; the bias comes later."""
    columns = r.components * r.group_width
    gemm(r.gemm, 0, 0, steps, columns, r.features, x_address, r.features, w, columns, a.dtype.type(0),
         a.ctypes.data + first * columns * a.itemsize, columns)  # fmt: skip


@compiled
def copy_rows(source, low, target, first, rows, columns):
    """Rows of inner products from row `low` on to those from row `first` on."""
    target[first * columns : (first + rows) * columns] = source[low * columns : (low + rows) * columns]


@compiled
def load_block(r, x, mask, low, steps, rows):
    """Address and number of those steps of a block that count, without gaps: others need no product.

    With `difference` they are what each step adds to the one before it.
    """
    n, counted = r.features, 0
    if not r.has_mask and not r.difference:
        return x.ctypes.data + low * n * x.itemsize, steps
    for t in range(steps):
        if r.has_mask and not mask[low + t]:
            continue
        row, there = rows[counted * n : (counted + 1) * n], (low + t) * n
        if r.difference and (low + t) % r.length > 0:
            subtract(row, x[there : there + n], x[there - n : there])
        else:
            row[:] = x[there : there + n]
        counted += 1
    return rows.ctypes.data, counted


@compiled
def spread_rows(source, low, counted, target, first, mask, turn, steps, columns):
    """Put rows without gaps where their steps are, beginning with the last: `target` may be `source`.

    Rows of steps that do not count stay as they are.
    """
    t = steps - 1
    while counted <= t and counted > 0:
        if mask[turn + t]:
            counted -= 1
            copy_rows(source, low + counted, target, first + t, 1, columns)
        t -= 1
    if source.ctypes.data != target.ctypes.data:
        copy_rows(source, low, target, first, counted, columns)


@compiled
def close_gaps(rows, mask, turn, steps, columns):
    """The opposite of `spread_rows`, in place."""
    counted = 0
    for t in range(steps):
        if mask[turn + t]:
            if counted < t:
                copy_rows(rows, t, rows, counted, 1, columns)
            counted += 1


@compiled
def clear_gaps(rows, first, mask, turn, steps, columns):
    """Set rows of steps that do not count to 0."""
    for t in range(steps):
        if not mask[turn + t]:
            rows[(first + t) * columns : (first + t + 1) * columns] = 0


@compiled
def subtract(target, a, b):
    for k in range(target.shape[0]):
        target[k] = a[k] - b[k]


@compiled
def undo_difference(dx, first, last, features):
    """From derivatives by increments to those by values, in rows `first` to `last` of one sequence."""
    for here in range(first * features, (last - 1) * features, features):
        row = dx[here : here + features]
        subtract(row, row, dx[here + features : here + 2 * features])


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
    products = memory(r.products, r.batch * r.length * columns if r.products else 0, zero)
    thread = thread_number(r.thread_number) if r.thread_number else r.thread
    a, cursor = carve(r.scratch + thread * r.scratch_size, r.block * columns, zero)
    path, cursor = carve(cursor, 2 * size, zero)
    rows, cursor = carve(cursor, r.block * r.features if r.has_mask or r.difference else 0, zero)
    h, cursor = carve(cursor, size, wide)
    base, cursor = carve(cursor, size, zero)
    change, cursor = carve(cursor, size, zero)
    path[:] = 1
    # One chain's states replace its inner products, so these may go where the states will stand.
    in_place = r.joined and width == r.width and r.out_size * out.itemsize <= LARGE_IN_PLACE
    past_caches = r.out_size * out.itemsize > LARGE
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
                total = number * steps
                target, first = (out, low) if in_place else (a, 0)
                address, counted = load_block(r, x, mask, low, total, rows)
                found, at = (products, low) if r.products else (target, first)
                if counted > 0:
                    project(r, address, counted, w, found, at)
                    spread_rows(found, at, counted, target, first, mask, low, total, columns)
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
                        row = first + k * steps
                        scan_joined(r, h, target, row, bias, steps, mask, here, change, base, path)
                        if not in_place:
                            write_rows(a, row, out, position, r.width, steps, r.levels, width, past_caches)
                    else:
                        scan_block(
                            r, h, path, a, k * steps, bias, steps, mask, here, component, parent, depth, runs,
                            coefficients, powers, change, base, out, position, output, count, r.sequences,
                        )  # fmt: skip
                    if index == r.blocks - 1:
                        write_state(h, final, place, r.width, count, width)
    fence()
    if r.limit_threads:
        limit_threads(r.limit_threads, before)


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
    products = memory(r.products, r.batch * r.length * columns if r.products else 0, zero)
    thread = thread_number(r.thread_number) if r.thread_number else r.thread
    a, cursor = carve(r.scratch + thread * r.scratch_size, r.block * columns, zero)
    path, cursor = carve(cursor, (r.block + 1) * size, zero)
    rows, cursor = carve(cursor, r.block * r.features if r.has_mask or r.difference else 0, zero)
    h, cursor = carve(cursor, size, wide)
    base, cursor = carve(cursor, size, zero)
    change, cursor = carve(cursor, size, zero)
    da, cursor = carve(cursor, r.block * columns, zero)
    adjoint, cursor = carve(cursor, size, wide)
    tail, cursor = carve(cursor, r.lift_order * WIDE, wide)
    line, cursor = carve(cursor, r.lift_order + 1, np.int64(0))
    part, cursor = carve(cursor, columns, zero)
    saved = memory(r.path, r.out_size if r.joined else 0, zero)
    if not r.joined:
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
        dx = memory(r.dx + group * x.shape[0] * x.itemsize, x.shape[0], zero)
        dw = r.dweight + task * r.features * columns * x.itemsize
        dbias = memory(r.dbias + task * columns * 8, columns, wide)
        dcoefficients = memory(r.dcoefficients + task * r.lift_order * width * 8, r.lift_order * width, wide)
        dpowers = memory(r.dpowers + task * r.power_size * 8, r.power_size, wide)
        dbias[:] = 0
        if r.lifted:
            dcoefficients[:] = 0
            dpowers[:] = 0
        found = False  # whether anything counts that the weights have a derivative by
        last = r.batch * (task % r.slices + 1) // r.slices
        for b in range(r.batch * (task % r.slices) // r.slices, last, r.together):
            number = min(r.together, last - b)
            for index in range(r.blocks - 1, -1, -1):
                steps, low = block_bounds(r, index)
                low += b * r.length
                total = number * steps
                address, counted = load_block(r, x, mask, low, total, rows)
                if counted > 0:
                    if r.products:
                        spread_rows(products, low, counted, a, 0, mask, low, total, columns)
                    else:
                        project(r, address, counted, w, a, 0)
                        spread_rows(a, 0, counted, a, 0, mask, low, total, columns)
                if r.shared or r.lifted:
                    da[: total * columns] = 0
                for k in range(number):
                    place = (b + k) * (r.states - 1) * r.width + start
                    if index == r.blocks - 1:
                        read_state(adjoint, dfinal, place, r.width, count, width)
                    position = ((b + k) * r.blocks + index) * (r.states - 1) * r.width + start
                    read_state(h, kept, position, r.width, count, width)
                    h[:width] = 1
                    here = low + k * r.length
                    if r.joined:
                        for q in range(columns):
                            path[q] = h[width + q]
                        retrace_joined(
                            r, adjoint, saved, a, da, k * steps, bias, steps, mask, here, change, base, dout,
                            here * r.levels * r.width + start, path, index == 0,
                        )  # fmt: skip
                    else:
                        scan_block(
                            r, h, path, a, k * steps, bias, steps, mask, here, component, parent, depth, runs,
                            coefficients, powers, change, base, dout, 0, output, count, False,
                        )  # fmt: skip
                        retrace_block(
                            r, adjoint, path, a, da, k * steps, bias, steps, mask, here, component, parent,
                            depth, runs, coefficients, powers, dcoefficients, dpowers, tail, line, dout,
                            start, output, count,
                        )  # fmt: skip
                    if index == 0:
                        write_state(adjoint, dstate, place, r.width, count, width)
                if r.has_mask:
                    close_gaps(da, mask, low, total, columns)
                if counted > 0:
                    gemm(r.gemm, 0, 1, counted, r.features, columns, da.ctypes.data, columns, w, columns,
                         zero, dx.ctypes.data + low * r.features * x.itemsize, r.features)  # fmt: skip
                    gemm(r.gemm, 1, 0, r.features, columns, counted, address, r.features, da.ctypes.data,
                         columns, one if found else zero, dw, columns)  # fmt: skip
                    spread_rows(dx, low, counted, dx, low, mask, low, total, r.features)
                    found = True
                if r.has_mask:
                    clear_gaps(dx, low, mask, low, total, r.features)
                if r.has_bias:
                    add_rows(da, counted, columns, part, dbias)
            if r.difference:
                for k in range(b, b + number):
                    undo_difference(dx, k * r.length, (k + 1) * r.length, r.features)
        if not found:
            memory(dw, r.features * columns, zero)[:] = 0
    if r.limit_threads:
        limit_threads(r.limit_threads, before)


@compiled
def regroup(r, zero):
    """Put the weights of a step's features side by side, where there is one group without padding."""
    size = r.features * r.width
    given = memory(r.given_weight, r.components * size, zero)
    weight = memory(r.weight, r.components * size, zero)
    thread = thread_number(r.thread_number) if r.thread_number else r.thread
    for row in range(thread, r.components * r.features, r.threads):
        component, feature = row // r.features, row % r.features
        there = (feature * r.components + component) * r.width
        weight[there : there + r.width] = given[row * r.width : (row + 1) * r.width]


@compiled
def totals(r, zero):
    """Sum what tasks have found, and put it in the order of the parameters."""
    columns, width = r.components * r.group_width, r.group_width
    size, wide = r.features * columns, np.float64(0)
    parts, dbias = memory(r.dweight, r.tasks * size, zero), memory(r.dbias, r.tasks * columns, wide)
    weight = memory(r.weight_total, r.components * r.features * r.width, zero)
    bias = memory(r.bias_total, r.components * r.width, zero)
    thread = thread_number(r.thread_number) if r.thread_number else r.thread
    for row in range(thread, r.components * r.features, r.threads):
        component, feature = row // r.features, row % r.features
        for task in range(r.tasks):
            start = task // r.slices * width
            here, count = row * r.width + start, min(width, r.width - start)
            there = task * size + feature * columns + component * width
            add_part(weight[here : here + count], parts[there : there + count], task % r.slices == 0)
    if thread == 0:
        for row in range(r.components):
            for task in range(r.tasks):
                start = task // r.slices * width
                here, there = row * r.width + start, task * columns + row * width
                count = min(width, r.width - start)
                add_part(bias[here : here + count], dbias[there : there + count], task % r.slices == 0)


@compiled
def add_part(target, part, first):
    if first:
        for q in range(target.shape[0]):
            target[q] = part[q]
    else:
        for q in range(target.shape[0]):
            target[q] += part[q]


# Entry points for other threads: C functions of one record. They stand in this file because numba looks at
# the file of a compiled function, and at no other, to see whether the code on disk is out of date. Each is
# compiled when it is first asked for, hence the functions around them.


@lru_cache(maxsize=8)
def entry(name: str) -> Any:
    """The compiled `forward32`, `backward32`, `totals32`, `regroup32`, or the same with 64."""
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


def _totals32() -> Any:
    @callback
    def totals32(call):
        totals(carray(call, (1,))[0], np.float32(0))

    return totals32


def _totals64() -> Any:
    @callback
    def totals64(call):
        totals(carray(call, (1,))[0], np.float64(0))

    return totals64


def _regroup32() -> Any:
    @callback
    def regroup32(call):
        regroup(carray(call, (1,))[0], np.float32(0))

    return regroup32


def _regroup64() -> Any:
    @callback
    def regroup64(call):
        regroup(carray(call, (1,))[0], np.float64(0))

    return regroup64
