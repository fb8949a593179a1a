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
from seq2tens.ops._lanes import WIDE, add, fill_wide, fma, lanes_of, load, load_wide, store, times

compiled = numba.njit(nogil=True, cache=True, error_model="numpy")
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
def advance(path, old, new, change, base, a, row, bias, runs):
    """One step of the plain recursion: h_m += h_(m-1) · a_m, from path[old:] to path[new:].

    A run is a range of states whose parents and components are ranges too: (state, parent, component, count).
    """
    lanes = lanes_of(path)
    for r in range(runs.shape[0]):
        state, parent, column = runs[r, 0], old + runs[r, 1], runs[r, 2]
        for q in range(0, runs[r, 3], lanes):
            factor = add(load(a, row + column + q), load(bias, column + q))
            moved = fma(factor, load(path, parent + q), load(change, state + q))
            store(change, state + q, moved)
            store(path, new + state + q, add(load(base, state + q), moved))


@compiled
def advance_joined(source, old, out, new, change, base, a, row, bias, width):
    """`advance` for one chain whose levels are the output: from source[old:] to out[new:], level 1 first."""
    lanes = lanes_of(out)
    for q in range(0, width, lanes):
        moved = add(add(load(a, row + q), load(bias, q)), load(change, width + q))
        store(change, width + q, moved)
        store(out, new + q, add(load(base, width + q), moved))
    for q in range(width, bias.shape[0], lanes):
        factor = add(load(a, row + q), load(bias, q))
        moved = fma(factor, load(source, old + q - width), load(change, width + q))
        store(change, width + q, moved)
        store(out, new + q, add(load(base, width + q), moved))


@compiled
def retreat(adjoint, path, here, a, da, row, bias, runs, shared):
    """Adjoint of `advance`; the state before the step is path[here:]. Children are read before parents.

    Where several states share a component, their parts are added to what `da` holds.
    """
    for r in range(runs.shape[0]):
        state, parent, column = runs[r, 0], runs[r, 1], runs[r, 2]
        for q in range(0, runs[r, 3], WIDE):
            flow = load_wide(adjoint, state + q)
            factor = add(load_wide(a, row + column + q), load_wide(bias, column + q))
            place = row + column + q
            part = times(flow, load_wide(path, here + parent + q))
            store(da, place, add(part, load_wide(da, place)) if shared else part)
            store(adjoint, parent + q, fma(flow, factor, load_wide(adjoint, parent + q)))


@compiled
def advance_lifted(h, a, row, bias, component, parent, depth, coefficients, powers, width):
    """One step with any lift and decay, in place; `powers` holds decay^0, decay^1, …"""
    for s in range(component.shape[0] - 1, 0, -1):
        for q in range(0, width, WIDE):
            value = times(load_wide(h, s * width + q), load_wide(powers, depth[s] * width + q))
            product = fill_wide(1.0)
            node = s
            for j in range(min(coefficients.shape[0], depth[s])):
                column = component[node] * width + q
                product = times(product, add(load_wide(a, row + column), load_wide(bias, column)))
                node = parent[node]
                faded = times(load_wide(powers, depth[node] * width + q), load_wide(h, node * width + q))
                value = fma(times(fill_wide(coefficients[j]), product), faded, value)
            store(h, s * width + q, value)


@compiled
def retreat_lifted(
    adjoint, h, a, da, row, bias, component, parent, depth, coefficients, powers, dcoefficients, dpowers,
    width, tail, line,
):  # fmt: skip
    """Adjoint of `advance_lifted`.

    With a_0, a_1, … the factors of a state and its ancestors, term j is c_j · a_0 ··· a_j · (faded ancestor
    j + 1). `tail[i]` sums what multiplies a_0 ··· a_i over all j >= i, so that no factor is divided out.
    """
    for s in range(1, component.shape[0]):
        terms = min(coefficients.shape[0], depth[s])
        line[0] = s
        for j in range(terms):
            line[j + 1] = parent[line[j]]
        for q in range(0, width, WIDE):
            for j in range(terms - 1, -1, -1):
                node = line[j + 1]
                faded = times(load_wide(powers, depth[node] * width + q), load_wide(h, node * width + q))
                rest = times(fill_wide(coefficients[j]), faded)
                if j + 1 < terms:
                    column = component[node] * width + q
                    factor = add(load_wide(a, row + column), load_wide(bias, column))
                    rest = fma(factor, load_wide(tail, (j + 1) * WIDE), rest)
                store(tail, j * WIDE, rest)
            flow = load_wide(adjoint, s * width + q)
            for j in range(terms):
                column = component[line[j]] * width + q
                place = row + column
                store(da, place, fma(flow, load_wide(tail, j * WIDE), load_wide(da, place)))
                flow = times(flow, add(load_wide(a, place), load_wide(bias, column)))
                node, power = line[j + 1] * width + q, depth[line[j + 1]] * width + q
                scaled = times(fill_wide(coefficients[j]), flow)
                slot = j * width + q
                fading = load_wide(powers, power)
                store(
                    dcoefficients,
                    slot,
                    fma(times(flow, fading), load_wide(h, node), load_wide(dcoefficients, slot)),
                )
                store(dpowers, power, fma(scaled, load_wide(h, node), load_wide(dpowers, power)))
                store(adjoint, node, fma(scaled, fading, load_wide(adjoint, node)))
            here, power = s * width + q, depth[s] * width + q
            flow = load_wide(adjoint, here)
            store(dpowers, power, fma(flow, load_wide(h, here), load_wide(dpowers, power)))
            store(adjoint, here, times(flow, load_wide(powers, power)))


@compiled
def read_state(h, source, position, total, count, width):
    """Fill states 1, 2, … from rows of `total` functionals, `count` of each; padding is 0."""
    h[:] = 0
    for s in range(h.shape[0] // width - 1):
        for j in range(count):
            h[(s + 1) * width + j] = source[position + s * total + j]


@compiled
def write_state(h, target, position, total, count, width):
    """The opposite of `read_state`."""
    for s in range(h.shape[0] // width - 1):
        for j in range(count):
            target[position + s * total + j] = h[(s + 1) * width + j]


@compiled
def write_output(path, here, out, position, total, output, count, width):
    """Copy the levels of one step to `out`, where a level has `total` functionals, from `position` on."""
    lanes = lanes_of(out)
    whole = count - count % lanes
    for o in range(output.shape[0]):
        target, source = position + o * total, here + output[o] * width
        for q in range(0, whole, lanes):
            store(out, target + q, load(path, source + q))
        for q in range(whole, count):
            out[target + q] = path[source + q]


@compiled
def read_gradient(adjoint, dout, position, total, output, count, width):
    """Add the incoming gradient of one step to the adjoint; positions as in `write_output`."""
    whole = count - count % WIDE
    for o in range(output.shape[0]):
        source, target = position + o * total, output[o] * width
        for q in range(0, whole, WIDE):
            store(adjoint, target + q, add(load_wide(dout, source + q), load_wide(adjoint, target + q)))
        for q in range(whole, count):
            adjoint[target + q] += dout[source + q]


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
