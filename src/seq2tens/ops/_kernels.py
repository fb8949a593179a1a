"""Fused forward and backward of the LS2T recursion, compiled by numba on first use.

A block of time steps is multiplied into a scratch that fits the cache, and scanned there. Between blocks
states are float64 whatever the input, and within a block only the change since its beginning is summed in
the input's dtype, so sums over a million steps stay accurate. The backward pass starts each block from a
state that the forward pass kept, runs it again, and walks back.

Layout: functionals are padded to whole cache lines, `width` in all. State 0 is the empty word, whose value
is 1; `component`, `parent` and `depth` are indexed by state. Arrays are flat: state s is
h[s · width : (s + 1) · width].
"""

from __future__ import annotations

import numba
import numpy as np

from seq2tens.ops._blas import gemm, limit_threads
from seq2tens.ops._lanes import WIDE, add, fill_wide, fma, load, load_wide, store, times

compiled = numba.njit(nogil=True, cache=True, error_model="numpy")


@compiled
def aligned(count, like):
    """Uninitialised memory that starts at a cache line, so that no vector lies across two."""
    size = like.itemsize
    raw = np.empty(count + 64 // size, like.dtype)
    start = (64 - raw.ctypes.data % 64) % 64 // size
    return raw[start : start + count]


@compiled
def project(address, x_address, features, steps, w, bias, has_bias, a):
    """Inner products of a block of steps with every vector: row t of `a` holds those of step t."""
    columns = w.shape[1]
    if has_bias:
        for t in range(steps):
            a[t * columns : (t + 1) * columns] = bias
    beta = a.dtype.type(1.0 if has_bias else 0.0)
    gemm(address, 0, 0, steps, columns, features, x_address, features, w.ctypes.data, columns, beta,
         a.ctypes.data, columns)  # fmt: skip


@compiled
def advance(path, old, new, change, base, a, row, runs):
    """One step of the plain recursion: h_m += h_(m-1) · a_m, from path[old:] to path[new:].

    A run is a range of states whose parents and components are ranges too: (state, parent, component, count).
    """
    lanes = 64 // path.itemsize
    for r in range(runs.shape[0]):
        state, parent, column = runs[r, 0], old + runs[r, 1], row + runs[r, 2]
        for q in range(0, runs[r, 3], lanes):
            moved = fma(load(a, column + q), load(path, parent + q), load(change, state + q))
            store(change, state + q, moved)
            store(path, new + state + q, add(load(base, state + q), moved))


@compiled
def retreat(adjoint, path, here, a, da, row, runs):
    """Adjoint of `advance`; the state before the step is path[here:]. Children are read before parents."""
    for r in range(runs.shape[0]):
        state, parent, column = runs[r, 0], runs[r, 1], row + runs[r, 2]
        for q in range(0, runs[r, 3], WIDE):
            flow = load_wide(adjoint, state + q)
            store(da, column + q, fma(flow, load_wide(path, here + parent + q), load_wide(da, column + q)))
            store(adjoint, parent + q, fma(flow, load_wide(a, column + q), load_wide(adjoint, parent + q)))


@compiled
def advance_lifted(h, a, row, component, parent, depth, coefficients, powers, width):
    """One step with any lift and decay, in place; `powers` holds decay^0, decay^1, …"""
    for s in range(component.shape[0] - 1, 0, -1):
        for q in range(0, width, WIDE):
            value = times(load_wide(h, s * width + q), load_wide(powers, depth[s] * width + q))
            product = fill_wide(1.0)
            node = s
            for j in range(min(coefficients.shape[0], depth[s])):
                product = times(product, load_wide(a, row + component[node] * width + q))
                node = parent[node]
                faded = times(load_wide(powers, depth[node] * width + q), load_wide(h, node * width + q))
                value = fma(times(fill_wide(coefficients[j]), product), faded, value)
            store(h, s * width + q, value)


@compiled
def retreat_lifted(
    adjoint, h, a, da, row, component, parent, depth, coefficients, powers, dcoefficients, dpowers, width,
    tail, line,
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
                    column = row + component[node] * width + q
                    rest = fma(load_wide(a, column), load_wide(tail, (j + 1) * WIDE), rest)
                store(tail, j * WIDE, rest)
            flow = load_wide(adjoint, s * width + q)
            for j in range(terms):
                column = row + component[line[j]] * width + q
                store(da, column, fma(flow, load_wide(tail, j * WIDE), load_wide(da, column)))
                flow = times(flow, load_wide(a, column))
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
def read_state(h, source, start, count, width):
    """Fill states 1, 2, … from rows of (states, functionals); padding is 0."""
    h[:] = 0
    for s in range(source.shape[0]):
        for j in range(count):
            h[(s + 1) * width + j] = source[s, start + j]


@compiled
def write_state(h, target, start, count, width):
    for s in range(target.shape[0]):
        for j in range(count):
            target[s, start + j] = h[(s + 1) * width + j]


@compiled
def write_output(path, here, out, position, total, output, count, width):
    """Copy the levels of one step to `out`, where a level has `total` functionals, from `position` on."""
    lanes = 64 // out.itemsize
    whole = count // lanes * lanes
    for o in range(output.shape[0]):
        target, source = position + o * total, here + output[o] * width
        for q in range(0, whole, lanes):
            store(out, target + q, load(path, source + q))
        for q in range(whole, count):
            out[target + q] = path[source + q]


@compiled
def read_gradient(adjoint, dout, position, total, output, count, width):
    """Add the incoming gradient of one step to the adjoint; positions as in `write_output`."""
    whole = count // WIDE * WIDE
    for o in range(output.shape[0]):
        source, target = position + o * total, output[o] * width
        for q in range(0, whole, WIDE):
            store(adjoint, target + q, add(load_wide(dout, source + q), load_wide(adjoint, target + q)))
        for q in range(whole, count):
            adjoint[target + q] += dout[source + q]


@compiled
def load_block(x, mask, low, steps, rows):
    """Copy steps of one sequence, with zeros at masked ones: padding may hold NaN."""
    for t in range(steps):
        for k in range(x.shape[1]):
            rows[t * x.shape[1] + k] = x[low + t, k] if mask[low + t] else 0


@compiled
def scan_block(
    h, path, a, columns, steps, mask, has_mask, low, reverse, lifted, component, parent, depth, runs,
    coefficients, powers, width, change, base, out, position, output, count, total,
):  # fmt: skip
    """Run one block from state h, which becomes the state after it.

    The state after i steps goes to row i of `path`, modulo its number of rows: two are enough to go forwards.
    Levels go to `out`, step t of the block at `position` + t · (a step's size), unless `total` is 0.
    """
    size = h.shape[0]
    count_rows = path.shape[0] // size
    path[:size] = h
    base[:] = h
    change[:] = 0
    for i in range(steps):
        t = steps - 1 - i if reverse else i
        old, new = i % count_rows * size, (i + 1) % count_rows * size
        if has_mask and not mask[low + t]:
            path[new : new + size] = path[old : old + size]
        elif lifted:
            advance_lifted(h, a, t * columns, component, parent, depth, coefficients, powers, width)
            path[new : new + size] = h
        else:
            advance(path, old, new, change, base, a, t * columns, runs)
        if total:
            write_output(path, new, out, position + t * output.shape[0] * total, total, output, count, width)
    if not lifted:
        for q in range(width, size):
            h[q] += change[q]


@compiled
def forward(
    x, w, bias, coefficients, powers, mask, state, out, final, kept,
    component, parent, depth, runs, output, options, block, blas, first, last, start, count,
):  # fmt: skip
    """Sequences first..last, functionals start..start + count; `options` are the switches unpacked below."""
    has_bias, has_mask, lifted, reverse, sequences, keep = options
    length, features, columns = x.shape[1], x.shape[2], w.shape[1]
    width = powers.shape[0] // (depth.max() + 1)
    size = component.shape[0] * width
    before = limit_threads(blas[1], 1) if blas[1] else 0
    a, path = aligned(block * columns, x), aligned(2 * size, x)
    path[:] = 1
    rows = aligned(block * features if has_mask else 0, x)
    h, base, change = aligned(size, powers), aligned(size, x), aligned(size, x)
    flat = out.reshape(-1)
    for b in range(first, last):
        read_state(h, state[b], start, count, width)
        h[:width] = 1
        for index in range((length + block - 1) // block):
            steps = min(block, length - index * block)
            low = length - index * block - steps if reverse else index * block
            if keep:
                write_state(h, kept[b, index], start, count, width)
            address = x[b, low:].ctypes.data
            if has_mask:
                load_block(x[b], mask[b], low, steps, rows)
                address = rows.ctypes.data
            project(blas[0], address, features, steps, w, bias, has_bias, a)
            position = (b * length + low) * output.shape[0] * out.shape[3] + start
            scan_block(h, path, a, columns, steps, mask[b if has_mask else 0], has_mask, low, reverse, lifted,
                       component, parent, depth, runs, coefficients, powers, width, change, base,
                       flat, position, output, count, out.shape[3] if sequences else 0)  # fmt: skip
        write_state(h, final[b], start, count, width)
    if blas[1]:
        limit_threads(blas[1], before)


@compiled
def backward(
    x, w, bias, coefficients, powers, mask, dout, dfinal, kept,
    dx, dw, dbias, dcoefficients, dpowers, dstate,
    component, parent, depth, runs, output, options, block, blas, first, last, start, count,
):  # fmt: skip
    """Adjoint of `forward`. Sums over sequences go to this task's own arrays."""
    has_bias, has_mask, lifted, reverse, sequences, _ = options
    length, features, columns = x.shape[1], x.shape[2], w.shape[1]
    width = powers.shape[0] // (depth.max() + 1)
    size = component.shape[0] * width
    before = limit_threads(blas[1], 1) if blas[1] else 0
    a, da = aligned(block * columns, x), aligned(block * columns, x)
    rows = aligned(block * features if has_mask else 0, x)
    path, adjoint = aligned((block + 1) * size, x), aligned(size, powers)
    path[:] = 1
    h, base, change = aligned(size, powers), aligned(size, x), aligned(size, x)
    tail = aligned(coefficients.shape[0] * WIDE, powers)
    line = np.empty(coefficients.shape[0] + 1, np.int64)
    zero, one = x.dtype.type(0), x.dtype.type(1)
    flat, levels, total = dout.reshape(-1), dout.shape[2], dout.shape[3]
    for b in range(first, last):
        read_state(adjoint, dfinal[b], start, count, width)
        for index in range((length + block - 1) // block - 1, -1, -1):
            steps = min(block, length - index * block)
            low = length - index * block - steps if reverse else index * block
            address = x[b, low:].ctypes.data
            if has_mask:
                load_block(x[b], mask[b], low, steps, rows)
                address = rows.ctypes.data
            project(blas[0], address, features, steps, w, bias, has_bias, a)
            read_state(h, kept[b, index], start, count, width)
            h[:width] = 1
            scan_block(h, path, a, columns, steps, mask[b if has_mask else 0], has_mask, low, reverse, lifted,
                       component, parent, depth, runs, coefficients, powers, width, change, base,
                       flat, 0, output, count, 0)  # fmt: skip
            da[: steps * columns] = 0
            for i in range(steps - 1, -1, -1):
                t = steps - 1 - i if reverse else i
                if sequences:
                    position = ((b * length + low + t) * levels) * total + start
                    read_gradient(adjoint, flat, position, total, output, count, width)
                if has_mask and not mask[b, low + t]:
                    continue
                if lifted:
                    retreat_lifted(
                        adjoint, path[i * size : (i + 1) * size], a, da, t * columns, component, parent, depth,
                        coefficients, powers, dcoefficients, dpowers, width, tail, line,
                    )  # fmt: skip
                else:
                    retreat(adjoint, path, i * size, a, da, t * columns, runs)
            gemm(blas[0], 0, 1, steps, features, columns, da.ctypes.data, columns, w.ctypes.data, columns,
                 zero, dx[b, low:].ctypes.data, features)  # fmt: skip
            gemm(blas[0], 1, 0, features, columns, steps, address, features, da.ctypes.data, columns, one,
                 dw.ctypes.data, columns)  # fmt: skip
            if has_bias:
                for t in range(steps):
                    for q in range(columns):
                        dbias[q] += da[t * columns + q]
        write_state(adjoint, dstate[b], start, count, width)
    if blas[1]:
        limit_threads(blas[1], before)
