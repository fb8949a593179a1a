"""What the record of a call to the recursion's kernels speaks of: arrays, and the share of a task.

Layout and record `r` are those of `_kernels`. Compiled by numba.
"""

from __future__ import annotations

import numpy as np

from seq2tens.ops._kernel_tools import bytes_of, carve, compiled, memory, this_thread


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
def inputs(r, zero):
    """Values, mask, coefficients of the lift, states kept at the beginnings of blocks, and inner products."""
    return (
        memory(r.x, r.batch * r.length * r.features, zero),
        memory(r.mask, r.batch * r.length if r.has_mask else 0, np.uint8(0)),
        memory(r.coefficients, r.lift_order, np.float64(0)),
        memory(r.kept, r.kept_size, np.float64(0)),
        memory(r.products, r.batch * r.length * r.components * r.group_width if r.products else 0, zero),
    )


@compiled
def results(r, zero):
    """Levels, the states before the first step and those after the last, or derivatives by them."""
    return (
        memory(r.out, r.out_size, zero),
        memory(r.state, r.state_size, zero),
        memory(r.final, r.state_size, zero),
    )


@compiled
def scratch(r, path_rows, zero):
    """This thread's arrays: inner products, states along a block, its rows of values, a state in full
    precision, its base and its change; and where the rest of the scratch begins."""
    size, wide = r.states * r.group_width, np.float64(0)
    a, cursor = carve(
        r.scratch + this_thread(r) * r.scratch_size, r.block * r.components * r.group_width, zero
    )
    path, cursor = carve(cursor, path_rows * size, zero)
    rows, cursor = carve(cursor, r.block * r.features if r.has_mask or r.difference else 0, zero)
    h, cursor = carve(cursor, size, wide)
    base, cursor = carve(cursor, size, zero)
    change, cursor = carve(cursor, size, zero)
    return a, path, rows, h, base, change, cursor


@compiled
def share_of(r, task):
    """The sequences of a task, from one to another, and its functionals: the first and their number."""
    part, start = task % r.slices, task // r.slices * r.group_width
    low, high = r.batch * part // r.slices, r.batch * (part + 1) // r.slices
    return low, high, start, min(r.group_width, r.width - start)


@compiled
def parameters(r, task, zero):
    """Address of the weights of a task's functionals, their bias and the powers of a lift."""
    group, columns = task // r.slices, r.components * r.group_width
    itemsize = bytes_of(zero)
    bias = memory(r.bias + group * columns * itemsize, columns, zero)
    powers = memory(r.powers + group * r.power_size * 8, r.power_size if r.lifted else 0, np.float64(0))
    return r.weight + group * r.features * columns * itemsize, bias, powers


@compiled
def gradients(r, task, zero):
    """A task's own parts of the derivatives, by weights as an address; what sums begin with is cleared."""
    columns, width, wide = r.components * r.group_width, r.group_width, np.float64(0)
    size, itemsize = r.batch * r.length * r.features, bytes_of(zero)
    dx = memory(r.dx + task // r.slices * size * itemsize, size, zero)
    dbias = memory(r.dbias + task * columns * 8, columns, wide)
    dcoefficients = memory(r.dcoefficients + task * r.lift_order * width * 8, r.lift_order * width, wide)
    dpowers = memory(r.dpowers + task * r.power_size * 8, r.power_size, wide)
    dbias[:] = 0
    if r.lifted:
        dcoefficients[:] = 0
        dpowers[:] = 0
    return dx, r.dweight + task * r.features * columns * itemsize, dbias, dcoefficients, dpowers


@compiled
def place_of(r, b, start):
    """Where the state of a sequence lies."""
    return b * (r.states - 1) * r.width + start
