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

import numpy as np
from numba import carray

from seq2tens.ops._blas import gemm
from seq2tens.ops._blocks import add_rows, retrace_block, retrace_joined, scan_block, scan_joined
from seq2tens.ops._calls import CALL
from seq2tens.ops._kernel_tools import (
    callback,
    carve,
    compiled,
    limit_products,
    memory,
    this_thread,
)
from seq2tens.ops._lanes import WIDE, fence
from seq2tens.ops._levels import write_rows
from seq2tens.ops._packing import clear_gaps, close_gaps, load_block, spread_rows, undo_difference
from seq2tens.ops._record_views import (
    block_bounds,
    chain_arrays,
    gradients,
    inputs,
    parameters,
    place_of,
    results,
    scratch,
    share_of,
)
from seq2tens.ops._steps import read_state, write_state

# Results of more bytes than these will not be found in a cache again. They are written past the caches, which
# need not be filled first; matrix products cannot do so, and are written in place up to a larger size.
LARGE = 16 * 2**20
LARGE_IN_PLACE = 128 * 2**20

as_callback = callback(CALL)


@compiled
def project(r, x_address, steps, w, a, first):
    """Inner products of a block of steps with every vector, in rows of `a`; the bias comes later."""
    columns = r.components * r.group_width
    gemm(r.gemm, 0, 0, steps, columns, r.features, x_address, r.features, w, columns, a.dtype.type(0),
         a.ctypes.data + first * columns * a.itemsize, columns)  # fmt: skip


@compiled
def forward(r, zero):
    """All tasks of this thread; `zero` is of the input's dtype."""
    columns, width = r.components * r.group_width, r.group_width
    component, parent, depth, runs, output = chain_arrays(r)
    x, mask, coefficients, kept, products = inputs(r, zero)
    out, state, final = results(r, zero)
    a, path, rows, h, base, change, _ = scratch(r, 2, zero)
    path[:] = 1
    # One chain's states replace its inner products, so these may go where the states will stand.
    in_place = r.joined and width == r.width and r.out_size * out.itemsize <= LARGE_IN_PLACE
    past_caches = r.out_size * out.itemsize > LARGE
    before = limit_products(r, 1)
    for task in range(this_thread(r), r.tasks, r.threads):
        begin, end, start, count = share_of(r, task)
        w, bias, powers = parameters(r, task, zero)
        for b in range(begin, end, r.together):
            number = min(r.together, end - b)  # short sequences share a matrix product
            for index in range(r.blocks):
                steps, low = block_bounds(r, index)
                low += b * r.length
                target, first = (out, low) if in_place else (a, 0)
                found, at = (products, low) if r.products else (target, first)
                address, counted = load_block(r, x, mask, low, number * steps, rows)
                if counted > 0:
                    project(r, address, counted, w, found, at)
                    spread_rows(found, at, counted, target, first, mask, low, number * steps, columns)
                for k in range(number):
                    if index == 0:
                        read_state(h, state, place_of(r, b + k, start), r.width, count, width)
                        h[:width] = 1
                    if r.keep:
                        place = place_of(r, (b + k) * r.blocks + index, start)
                        write_state(h, kept, place, r.width, count, width)
                    here, row = low + k * r.length, first + k * steps
                    position = here * r.levels * r.width + start
                    if r.joined:
                        scan_joined(r, h, target, row, bias, steps, mask, here, change, base, path)
                        if not in_place:
                            write_rows(a, row, out, position, r.width, steps, r.levels, width, past_caches)
                    else:
                        scan_block(
                            r, h, path, a, row, bias, steps, mask, here, component, parent, depth, runs,
                            coefficients, powers, change, base, out, position, output, count, r.sequences,
                        )  # fmt: skip
                    if index == r.blocks - 1:
                        write_state(h, final, place_of(r, b + k, start), r.width, count, width)
    fence()
    limit_products(r, before)


@compiled
def products_again(r, address, counted, w, products, a, mask, low, steps):
    """The inner products of a block in `a`: those that were kept, or computed once more."""
    columns = r.components * r.group_width
    if counted > 0 and r.products:
        spread_rows(products, low, counted, a, 0, mask, low, steps, columns)
    elif counted > 0:
        project(r, address, counted, w, a, 0)
        spread_rows(a, 0, counted, a, 0, mask, low, steps, columns)


@compiled
def pull_back(r, da, address, counted, w, dx, dw, seen, mask, low, steps):
    """Derivatives by values and weights from those by a block's inner products, which lose their gaps.

    They are added to those by the weights if any were `seen` before. Returns whether there are some now.
    """
    columns, n, zero = r.components * r.group_width, r.features, da.dtype.type(0)
    if r.has_mask:
        close_gaps(da, mask, low, steps, columns)
    if counted > 0:
        gemm(r.gemm, 0, 1, counted, n, columns, da.ctypes.data, columns, w, columns, zero,
             dx.ctypes.data + low * n * dx.itemsize, n)  # fmt: skip
        gemm(r.gemm, 1, 0, n, columns, counted, address, n, da.ctypes.data, columns, da.dtype.type(seen), dw,
             columns)  # fmt: skip
        spread_rows(dx, low, counted, dx, low, mask, low, steps, n)
    if r.has_mask:
        clear_gaps(dx, low, mask, low, steps, n)
    return seen or counted > 0


@compiled
def backward(r, zero):
    """Adjoint of `forward`. What is summed over sequences goes to the task's own part of the arrays."""
    columns, width, wide = r.components * r.group_width, r.group_width, np.float64(0)
    component, parent, depth, runs, output = chain_arrays(r)
    x, mask, coefficients, kept, products = inputs(r, zero)
    dout, dstate, dfinal = results(r, zero)
    saved = memory(r.path, r.out_size if r.joined else 0, zero)
    a, path, rows, h, base, change, cursor = scratch(r, r.block + 1, zero)
    da, cursor = carve(cursor, r.block * columns, zero)
    adjoint, cursor = carve(cursor, r.states * width, wide)
    tail, cursor = carve(cursor, r.lift_order * WIDE, wide)
    line, cursor = carve(cursor, r.lift_order + 1, np.int64(0))
    part, cursor = carve(cursor, columns, zero)
    if not r.joined:
        path[:] = 1
    before = limit_products(r, 1)
    for task in range(this_thread(r), r.tasks, r.threads):
        begin, end, start, count = share_of(r, task)
        w, bias, powers = parameters(r, task, zero)
        dx, dw, dbias, dcoefficients, dpowers = gradients(r, task, zero)
        seen = False
        for b in range(begin, end, r.together):
            number = min(r.together, end - b)
            for index in range(r.blocks - 1, -1, -1):
                steps, low = block_bounds(r, index)
                low += b * r.length
                address, counted = load_block(r, x, mask, low, number * steps, rows)
                products_again(r, address, counted, w, products, a, mask, low, number * steps)
                if r.shared or r.lifted:
                    da[: number * steps * columns] = 0
                for k in range(number):
                    if index == r.blocks - 1:
                        read_state(adjoint, dfinal, place_of(r, b + k, start), r.width, count, width)
                    read_state(h, kept, place_of(r, (b + k) * r.blocks + index, start), r.width, count, width)
                    h[:width] = 1
                    here, row = low + k * r.length, k * steps
                    if r.joined:
                        for q in range(columns):
                            path[q] = h[width + q]
                        retrace_joined(
                            r, adjoint, saved, a, da, row, bias, steps, mask, here, change, base, dout,
                            here * r.levels * r.width + start, path, index == 0,
                        )  # fmt: skip
                    else:
                        scan_block(
                            r, h, path, a, row, bias, steps, mask, here, component, parent, depth, runs,
                            coefficients, powers, change, base, dout, 0, output, count, False,
                        )  # fmt: skip
                        retrace_block(
                            r, adjoint, path, a, da, row, bias, steps, mask, here, component, parent, depth,
                            runs, coefficients, powers, dcoefficients, dpowers, tail, line, dout, start,
                            output, count,
                        )  # fmt: skip
                    if index == 0:
                        write_state(adjoint, dstate, place_of(r, b + k, start), r.width, count, width)
                seen = pull_back(r, da, address, counted, w, dx, dw, seen, mask, low, number * steps)
                if r.has_bias:
                    add_rows(da, counted, columns, part, dbias)
            if r.difference:
                undo_difference(dx, b, number, r.length, r.features)
        if not seen:
            memory(dw, r.features * columns, zero)[:] = 0
    limit_products(r, before)


@compiled
def regroup(r, zero):
    """Put the weights of a step's features side by side, where there is one group without padding."""
    size = r.features * r.width
    given = memory(r.given_weight, r.components * size, zero)
    weight = memory(r.weight, r.components * size, zero)
    thread = this_thread(r)
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
    thread = this_thread(r)
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


def _totals32() -> Any:
    @as_callback
    def totals32(call):
        totals(carray(call, (1,))[0], np.float32(0))

    return totals32


def _totals64() -> Any:
    @as_callback
    def totals64(call):
        totals(carray(call, (1,))[0], np.float64(0))

    return totals64


def _regroup32() -> Any:
    @as_callback
    def regroup32(call):
        regroup(carray(call, (1,))[0], np.float32(0))

    return regroup32


def _regroup64() -> Any:
    @as_callback
    def regroup64(call):
        regroup(carray(call, (1,))[0], np.float64(0))

    return regroup64
