"""Fused forward and backward of the LS2T recursion, compiled by numba on first use.

A block of time steps is multiplied into a scratch that fits the cache, and scanned there. States are
float64 whatever the input, so sums over a million steps stay accurate. The backward pass starts each block
from a state that the forward pass kept, runs it again, and walks back.
"""

from __future__ import annotations

import numba
import numpy as np

from seq2tens.ops._blas import gemm, limit_threads

compiled = numba.njit(nogil=True, cache=True, error_model="numpy")


@compiled
def load_block(x, mask, low, high, rows):
    """Copy steps low..high of one sequence, with zeros at masked ones: padding may hold NaN."""
    for t in range(low, high):
        for k in range(x.shape[1]):
            rows[t - low, k] = x[t, k] if mask[t] else 0


@compiled
def project(address, x_address, features, steps, w, bias, has_bias, a):
    """Inner products of a block of steps with every vector: a[step, component · width + functional]."""
    if has_bias:
        for t in range(steps):
            for q in range(a.shape[1]):
                a[t, q] = bias[q]
    columns = a.shape[1]
    beta = a.dtype.type(1.0 if has_bias else 0.0)
    gemm(address, 0, 0, steps, columns, features, x_address, features, w.ctypes.data, columns, beta,
         a.ctypes.data, columns)  # fmt: skip


@compiled
def advance(h, a, component, parent, c):
    """One step of the plain recursion (one vector per step, no decay), in place."""
    width = h.shape[1]
    for s in range(h.shape[0] - 1, -1, -1):  # children first: they need their parent's old value
        column = component[s] * width
        p = parent[s]
        if p < 0:
            for j in range(width):
                h[s, j] += c * a[column + j]
        else:
            for j in range(width):
                h[s, j] += c * a[column + j] * h[p, j]


@compiled
def advance_lifted(h, a, component, parent, depth, coefficients, powers, product):
    """One step with any lift and decay, in place; `powers[m]` is decay^m."""
    width = h.shape[1]
    for s in range(h.shape[0] - 1, -1, -1):
        for j in range(width):
            h[s, j] *= powers[depth[s], j]
            product[j] = 1.0
        ancestor = s
        for q in range(coefficients.shape[0]):
            if ancestor < 0:
                break
            column = component[ancestor] * width
            ancestor = parent[ancestor]
            if ancestor < 0:
                for j in range(width):
                    product[j] *= a[column + j]
                    h[s, j] += coefficients[q] * product[j]
            else:
                level = depth[ancestor]
                for j in range(width):
                    product[j] *= a[column + j]
                    h[s, j] += coefficients[q] * product[j] * powers[level, j] * h[ancestor, j]


@compiled
def retreat(adjoint, h, a, da, component, parent, c):
    """Adjoint of `advance`; h is the state before the step."""
    width = h.shape[1]
    for s in range(h.shape[0]):  # parents first: they must be read before children add to them
        column = component[s] * width
        p = parent[s]
        if p < 0:
            for j in range(width):
                da[column + j] += c * adjoint[s, j]
        else:
            for j in range(width):
                flow = c * adjoint[s, j]
                da[column + j] += flow * h[p, j]
                adjoint[p, j] += flow * a[column + j]


@compiled
def retreat_lifted(
    adjoint, h, a, da, component, parent, depth, coefficients, powers, dcoefficients, dpowers, tail, product
):
    """Adjoint of `advance_lifted`.

    With a_0, a_1, … the factors of a state and its ancestors, term q is c_q · a_0 ··· a_q · (faded ancestor
    q + 1). `tail[r]` sums what multiplies a_0 ··· a_r over all q >= r, so that no factor is divided out.
    """
    width = h.shape[1]
    for s in range(h.shape[0]):
        terms = min(coefficients.shape[0], depth[s])
        _tails(s, terms, h, a, component, parent, depth, coefficients, powers, tail)
        product[:] = adjoint[s]
        node = s
        for q in range(terms):
            column = component[node] * width
            node = parent[node]
            for j in range(width):
                da[column + j] += product[j] * tail[q, j]
                product[j] *= a[column + j]
            level = 0 if node < 0 else depth[node]
            for j in range(width):
                value = 1.0 if node < 0 else h[node, j]
                dcoefficients[q, j] += product[j] * powers[level, j] * value
            if node >= 0:
                for j in range(width):
                    dpowers[level, j] += coefficients[q] * product[j] * h[node, j]
                    adjoint[node, j] += coefficients[q] * product[j] * powers[level, j]
        for j in range(width):
            dpowers[depth[s], j] += adjoint[s, j] * h[s, j]
            adjoint[s, j] *= powers[depth[s], j]


@compiled
def _tails(s, terms, h, a, component, parent, depth, coefficients, powers, tail):
    width = h.shape[1]
    node = s
    for q in range(terms):
        node = parent[node]
        for j in range(width):
            value = 1.0 if node < 0 else powers[depth[node], j] * h[node, j]
            tail[q, j] = coefficients[q] * value
    for q in range(terms - 2, -1, -1):
        node = s
        for _ in range(q + 1):
            node = parent[node]
        column = component[node] * width
        for j in range(width):
            tail[q, j] += a[column + j] * tail[q + 1, j]


@compiled
def forward(
    x, w, bias, coefficients, powers, mask, state, out, final, kept,
    component, parent, depth, output, options, block, blas, first, last, start,
):  # fmt: skip
    """Sequences first..last, functionals from `start` on; `options` are the switches unpacked below."""
    has_bias, has_mask, lifted, reverse, sequences, keep = options
    length, features = x.shape[1], x.shape[2]
    states, width = component.shape[0], w.shape[1] // (component.max() + 1)
    before = limit_threads(blas[1], 1) if blas[1] else 0
    a = np.empty((block, w.shape[1]), x.dtype)
    rows = np.empty((block if has_mask else 0, features), x.dtype)
    h = np.empty((states, width))
    product = np.empty(width)
    for b in range(first, last):
        for s in range(states):
            for j in range(width):
                h[s, j] = state[b, s, start + j]
        for index in range((length + block - 1) // block):
            steps = min(block, length - index * block)
            low = length - index * block - steps if reverse else index * block
            if keep:
                for s in range(states):
                    for j in range(width):
                        kept[b, index, s, start + j] = h[s, j]
            address = x[b, low:].ctypes.data
            if has_mask:
                load_block(x[b], mask[b], low, low + steps, rows)
                address = rows.ctypes.data
            project(blas[0], address, features, steps, w, bias, has_bias, a)
            for i in range(steps):
                row = steps - 1 - i if reverse else i
                if not has_mask or mask[b, low + row]:
                    if lifted:
                        advance_lifted(h, a[row], component, parent, depth, coefficients, powers, product)
                    else:
                        advance(h, a[row], component, parent, coefficients[0])
                if sequences:
                    for o in range(output.shape[0]):
                        for j in range(width):
                            out[b, low + row, o, start + j] = h[output[o], j]
        for s in range(states):
            for j in range(width):
                final[b, s, start + j] = h[s, j]
    if blas[1]:
        limit_threads(blas[1], before)


@compiled
def backward(
    x, w, bias, coefficients, powers, mask, dout, dfinal, kept,
    dx, dw, dbias, dcoefficients, dpowers, dstate,
    component, parent, depth, output, options, block, blas, first, last, start,
):  # fmt: skip
    """Adjoint of `forward`. Sums over sequences go to this task's own arrays."""
    has_bias, has_mask, lifted, reverse, sequences, _ = options
    length, features = x.shape[1], x.shape[2]
    states, width, columns = component.shape[0], w.shape[1] // (component.max() + 1), w.shape[1]
    before = limit_threads(blas[1], 1) if blas[1] else 0
    a = np.empty((block, columns), x.dtype)
    da = np.empty((block, columns), x.dtype)
    rows = np.empty((block if has_mask else 0, features), x.dtype)
    path = np.empty((block + 1, states, width))
    adjoint = np.empty((states, width))
    product = np.empty(width)
    tail = np.empty((coefficients.shape[0], width))
    zero, one = x.dtype.type(0), x.dtype.type(1)
    blocks = (length + block - 1) // block
    for b in range(first, last):
        for s in range(states):
            for j in range(width):
                adjoint[s, j] = dfinal[b, s, start + j]
        for index in range(blocks - 1, -1, -1):
            steps = min(block, length - index * block)
            low = length - index * block - steps if reverse else index * block
            address = x[b, low:].ctypes.data
            if has_mask:
                load_block(x[b], mask[b], low, low + steps, rows)
                address = rows.ctypes.data
            project(blas[0], address, features, steps, w, bias, has_bias, a)
            for s in range(states):
                for j in range(width):
                    path[0, s, j] = kept[b, index, s, start + j]
            for i in range(steps - 1):
                row = steps - 1 - i if reverse else i
                path[i + 1] = path[i]
                if not has_mask or mask[b, low + row]:
                    if lifted:
                        advance_lifted(
                            path[i + 1], a[row], component, parent, depth, coefficients, powers, product
                        )
                    else:
                        advance(path[i + 1], a[row], component, parent, coefficients[0])
            for i in range(steps - 1, -1, -1):
                row = steps - 1 - i if reverse else i
                if sequences:
                    for o in range(output.shape[0]):
                        for j in range(width):
                            adjoint[output[o], j] += dout[b, low + row, o, start + j]
                da[row] = zero
                if not has_mask or mask[b, low + row]:
                    if lifted:
                        retreat_lifted(
                            adjoint, path[i], a[row], da[row], component, parent, depth, coefficients, powers,
                            dcoefficients, dpowers, tail, product,
                        )  # fmt: skip
                    else:
                        retreat(adjoint, path[i], a[row], da[row], component, parent, coefficients[0])
            gemm(blas[0], 0, 1, steps, features, columns, da.ctypes.data, columns, w.ctypes.data, columns,
                 zero, dx[b, low:].ctypes.data, features)  # fmt: skip
            gemm(blas[0], 1, 0, features, columns, steps, address, features, da.ctypes.data, columns, one,
                 dw.ctypes.data, columns)  # fmt: skip
            for i in range(steps):
                for q in range(columns):
                    dbias[q] += da[i, q]
        for s in range(states):
            for j in range(width):
                dstate[b, s, start + j] = adjoint[s, j]
    if blas[1]:
        limit_threads(blas[1], before)
