"""Fused forward and backward of the full map over whole sequences, compiled by numba on first use.

States are float64 whatever the input. The backward pass starts each block of steps from a state that the
forward pass kept, runs it again, and walks back; the top level is never needed for that.

Two ways: `forward` and `backward` update every level at every step, for one sequence or for a group of up to
`LANES` of them side by side. `forward_long` and `backward_long` are for one sequence with a large top level,
which is a sum over time of outer products, so a matrix product per block.
"""

from __future__ import annotations

from seq2tens.ops._blas import gemm
from seq2tens.ops._full_map_steps import NUMBER, VECTOR, advance, combine, horner, retreat, unwind
from seq2tens.ops._kernel_tools import compiled, copy
from seq2tens.ops._simd import LANES, turn


@compiled
def read_steps(x, low, rows, steps, columns, increments):
    """Copy steps from `low` on to rows (step, letter) with one column per sequence, the rest 0."""
    count, _, d = x.shape
    size, done = (steps + increments) * d, 0
    if count < columns:
        rows[:] = 0.0
    elif columns == LANES:
        done = size // LANES * LANES
        for q in range(0, done, LANES):
            source, target = x.ctypes.data + (low * d + q) * x.itemsize, rows.ctypes.data + q * VECTOR
            turn(source, x.strides[0], x.dtype.type(0), target, VECTOR, 0.0)
    for w in range(count):
        source = x[w, low:].ravel()
        for q in range(done, size):
            rows[q * columns + w] = source[q]
    if increments:
        at, step = rows.ctypes.data, d * columns
        combine(1.0, at + NUMBER * step, -1.0, at, at, steps * step)


@compiled
def write_steps(rows, dx, low, steps, columns, increments):
    """Adjoint of `read_steps`. With increments, later blocks come first and leave their first step behind."""
    count, _, d = dx.shape
    step = d * columns
    if increments:
        at = rows.ctypes.data
        if low == 0:
            for w in range(count):
                for j in range(d):
                    dx[w, 0, j] = -rows[j * columns + w]
        first = rows[:step].copy()
        combine(1.0, at, -1.0, at + NUMBER * step, at, steps * step)
        rows[-step:] = first
        low += 1
    size, done = steps * d, 0
    if count == LANES:
        done = size // LANES * LANES
        for q in range(0, done, LANES):
            source, target = rows.ctypes.data + q * VECTOR, dx.ctypes.data + (low * d + q) * dx.itemsize
            turn(source, VECTOR, 0.0, target, dx.strides[0], dx.dtype.type(0))
    for w in range(count):
        target = dx[w, low:].ravel()
        for q in range(done, size):
            target[q] = rows[q * columns + w]


@compiled
def write_states(s, words, out, columns):
    """The state of each sequence in the order of the output."""
    for w in range(out.shape[0]):
        for q in range(words.shape[0]):
            out[w, q] = s[words[q] * columns + w]


@compiled
def add_output_gradients(dout, words, g, columns):
    for w in range(dout.shape[0]):
        for q in range(words.shape[0]):
            g[words[q] * columns + w] += dout[w, q]


@compiled
def forward(x, c, starts, words, out, kept, scratch, columns, block, sequences, increments):
    """One group; `kept` is (blocks, lower levels)."""
    length, d = x.shape[1] - increments, x.shape[2]
    order, size, lower = starts.shape[0] - 2, starts[-1] * columns, starts[-2] * columns
    rows = scratch[size + lower :]
    s = scratch.ctypes.data
    chain, steps_at = s + NUMBER * size, s + NUMBER * (size + lower)
    step_size = NUMBER * d * columns
    scratch[:columns] = 1.0
    scratch[columns:size] = 0.0
    for low in range(0, length, block):
        steps = min(block, length - low)
        if kept.shape[0]:
            copy(scratch[:lower], kept[low // block])
        read_steps(x, low, rows, steps, columns, increments)
        for i in range(steps):
            advance(s, s, steps_at + i * step_size, c, starts, chain, order, d, columns > 1)
            if sequences:
                write_states(scratch, words, out[:, low + i], columns)
    if not sequences:
        write_states(scratch, words, out[:, 0], columns)


@compiled
def rerun(path, steps_at, steps, c, starts, chain, d, columns):
    """States before every step of a block, lower levels only, from the first of them."""
    order = starts.shape[0] - 2
    size = NUMBER * columns * starts[order]
    for i in range(steps - 1):
        step = steps_at + i * NUMBER * d * columns
        advance(path + i * size, path + (i + 1) * size, step, c, starts, chain, order - 1, d, columns > 1)


@compiled
def backward(x, c, starts, words, dout, kept, dx, dc, scratch, columns, block, sequences, increments):
    """One group."""
    length, d = x.shape[1] - increments, x.shape[2]
    order, size, lower = starts.shape[0] - 2, starts[-1] * columns, starts[-2] * columns
    step_size = d * columns
    rest = scratch[size + 2 * lower :]
    room = (block + 1) * step_size
    rows, drows, path = rest[:room], rest[room : 2 * room], rest[2 * room :]
    g, steps_at, dsteps_at, path_at = (
        scratch.ctypes.data, rows.ctypes.data, drows.ctypes.data, path.ctypes.data,
    )  # fmt: skip
    chain, dchain = g + NUMBER * size, g + NUMBER * (size + lower)
    scratch[:size] = 0.0
    dx[:, length:] = 0
    drows[:] = 0.0
    if not sequences:
        add_output_gradients(dout[:, 0], words, scratch, columns)
    for low in range((length - 1) // block * block, -1, -block):
        steps = min(block, length - low)
        read_steps(x, low, rows, steps, columns, increments)
        copy(kept[low // block], path)
        rerun(path_at, steps_at, steps, c, starts, chain, d, columns)
        drows[:-step_size] = 0.0
        for i in range(steps - 1, -1, -1):
            if sequences:
                add_output_gradients(dout[:, low + i], words, scratch, columns)
            at, s = i * NUMBER * step_size, path_at + i * NUMBER * lower
            step, dstep = steps_at + at, dsteps_at + at
            retreat(g, s, step, c, starts, chain, dchain, dstep, dc, order, d, columns > 1)
        write_steps(drows, dx, low, steps, columns, increments)


@compiled
def forward_long(x, c, starts, words, out, kept, scratch, narrow, h, sums, block, increments, blas):
    """One sequence. Where numbers are narrower than the state, products of one block go through `sums`."""
    length, d = x.shape[1] - increments, x.shape[2]
    order, size, lower = starts.shape[0] - 2, starts[-1], starts[-2]
    top, chain_last, rows = (
        scratch[lower:size],
        scratch[size + starts[-3] : size + lower],
        scratch[size + lower :],
    )
    s, n, steps_at = scratch.ctypes.data, h.shape[1], rows.ctypes.data
    chain = s + NUMBER * size
    zero, one, convert = h.dtype.type(0), h.dtype.type(1), h.itemsize != NUMBER
    scratch[0] = 1.0
    scratch[1:size] = 0.0
    for low in range(0, length, block):
        steps = min(block, length - low)
        if kept.shape[0]:
            copy(scratch[:lower], kept[low // block])
        read_steps(x, low, rows, steps, 1, increments)
        copy(rows[: steps * d], narrow)
        for i in range(steps):
            step = steps_at + i * NUMBER * d
            last = chain_last.ctypes.data if convert else h.ctypes.data + i * NUMBER * n
            horner(order, s, step, c, starts, chain, last, d, False)
            if convert:
                copy(chain_last, h[i])
            advance(s, s, step, c, starts, chain, order - 1, d, False)
        a = narrow.ctypes.data
        if convert:
            gemm(blas, 1, 0, d, n, steps, a, d, h.ctypes.data, n, zero, sums.ctypes.data, n)
            for i in range(sums.shape[0]):
                top[i] += sums[i]
        else:
            gemm(blas, 1, 0, d, n, steps, a, d, h.ctypes.data, n, one, top.ctypes.data, n)
    write_states(scratch, words, out[:, 0], 1)


@compiled
def backward_long(
    x, c, starts, words, dout, kept, dx, dc, scratch, narrow, h, dh, top, block, increments, blas
):
    """One sequence; the gradient by the top level, `top`, is the same at every step."""
    length, d = x.shape[1] - increments, x.shape[2]
    order, lower, below = starts.shape[0] - 2, starts[-2], starts[-3]
    chain_last, dchain_last = scratch[lower + below : 2 * lower], scratch[2 * lower + below : 3 * lower]
    rest = scratch[3 * lower :]
    room = (block + 1) * d
    rows, drows, path = rest[:room], rest[room : 2 * room], rest[2 * room :]
    g, steps_at, dsteps_at, path_at = (
        scratch.ctypes.data, rows.ctypes.data, drows.ctypes.data, path.ctypes.data,
    )  # fmt: skip
    chain, dchain = g + NUMBER * lower, g + 2 * NUMBER * lower
    n, zero, convert = h.shape[1], h.dtype.type(0), h.itemsize != NUMBER
    a, top_at = narrow.ctypes.data, top.ctypes.data
    dx[:, length:] = 0
    drows[:] = 0.0
    for q in range(lower):
        scratch[words[q]] = dout[0, 0, q]
    for q in range(lower, words.shape[0]):
        top[words[q] - lower] = dout[0, 0, q]
    for low in range((length - 1) // block * block, -1, -block):
        steps = min(block, length - low)
        read_steps(x, low, rows, steps, 1, increments)
        copy(rows[: steps * d], narrow)
        copy(kept[low // block], path)
        rerun(path_at, steps_at, steps, c, starts, chain, d, 1)
        gemm(blas, 0, 0, steps, n, d, a, d, top_at, n, zero, dh.ctypes.data, n)
        drows[:-d] = 0.0
        for i in range(steps - 1, -1, -1):
            s, step, dstep = (
                path_at + i * NUMBER * lower,
                steps_at + i * NUMBER * d,
                dsteps_at + i * NUMBER * d,
            )
            retreat(g, s, step, c, starts, chain, dchain, dstep, dc, order - 1, d, False)
            last, flow = h.ctypes.data + i * NUMBER * n, dh.ctypes.data + i * NUMBER * n
            if convert:
                last, flow = chain_last.ctypes.data, dchain_last.ctypes.data
                copy(dh[i], dchain_last)
            horner(order, s, step, c, starts, chain, last, d, False)
            if convert:
                copy(chain_last, h[i])
            unwind(order, s, step, c, starts, chain, flow, dchain, g, dstep, dc, d, False)
        gemm(blas, 0, 1, steps, d, n, h.ctypes.data, n, top_at, n, zero, a, d)
        for q in range(steps * d):
            drows[q] += narrow[q]
        write_steps(drows, dx, low, steps, 1, increments)
