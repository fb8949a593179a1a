"""A block of time steps of the LS2T recursion, forwards and back again, compiled by numba.

Layout and record `r` are those of `_kernels`. Within a block only the change since its beginning is summed in
the input's dtype.
"""

from __future__ import annotations

from seq2tens.ops._kernel_tools import compiled
from seq2tens.ops._lanes import add, lanes_of, load, store
from seq2tens.ops._levels import FOUR, retreat_level, scan_level, scan_level_by_four
from seq2tens.ops._steps import (
    advance,
    advance_lifted,
    read_gradient,
    retreat,
    retreat_lifted,
    write_output,
)

TILE = 24 * 1024  # bytes of rows that stay in the first cache while all their levels are scanned


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
def scan_joined(r, h, rows, first, bias, steps, mask, low, change, base, initial):
    """`scan_block` for one plain chain, in place: inner products, from row `first` on, become levels."""
    width, columns, lanes = r.group_width, bias.shape[0], lanes_of(rows)
    for q in range(columns):
        initial[q] = h[width + q]
    base[:] = h
    change[:] = 0
    delta = -columns if r.reverse else columns
    tile = max(8, TILE // (columns * rows.itemsize))
    for begin in range(0, steps, tile):
        count, t = min(tile, steps - begin), steps - 1 - begin if r.reverse else begin
        here = (first + t) * columns
        for level in range(0, columns, width):
            q = level
            if level > 0 and not r.has_mask:
                while q + FOUR * lanes <= level + width:
                    scan_level_by_four(rows, here, delta, count, initial, change, base, bias, q, width)
                    q += FOUR * lanes
            for column in range(q, level + width, lanes):
                scan_level(
                    rows, here, delta, count, initial, mask, low + t, r.has_mask, change, base, bias, column,
                    width,
                )  # fmt: skip
        last = here + (count - 1) * delta
        for q in range(0, columns, lanes):
            store(initial, q, load(rows, last + q))
    close_block(h, change, width)


@compiled
def close_block(h, change, width):
    """Add what has changed since the block began."""
    for q in range(width, h.shape[0]):
        h[q] += change[q]


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
def retrace_joined(
    r, adjoint, path, a, da, first, bias, steps, mask, low, change, base, dout, position, initial, at_start
):
    """Walk back through a block of one plain chain, whose states `path` holds along time, as `dout` is held.

    The state before the first step of all is `initial`; that is where a block `at_start` begins. The inner
    products in `a` are lost.
    """
    width, columns, lanes, row = r.group_width, bias.shape[0], lanes_of(da), r.levels * r.width
    base[:] = adjoint
    change[:] = 0
    delta, stride = (-columns, -row) if r.reverse else (columns, row)
    tile = max(8, TILE // (columns * da.itemsize))
    for end in range(steps, 0, -tile):
        count, t = min(tile, end), steps - end if r.reverse else end - 1
        here, there = (first + t) * columns, position + t * row
        for index in range(r.levels - 1, -1, -1):
            for q in range(0, width, lanes):
                place = there + index * r.width + q
                retreat_level(
                    path, place - stride - r.width, dout, place, stride, initial, at_start and count == end,
                    a, da, here, delta, count, mask, low + t, r.has_mask, change, base, bias,
                    index * width + q, width, index == r.levels - 1,
                )  # fmt: skip
    close_block(adjoint, change, width)


@compiled
def add_rows(da, rows, columns, part, total):
    """Add the sum of all rows of `da` to `total`, by way of `part` in the dtype of `da`."""
    lanes = lanes_of(da)
    part[:columns] = 0
    for t in range(rows):
        for q in range(0, columns, lanes):
            store(part, q, add(load(part, q), load(da, t * columns + q)))
    for q in range(columns):
        total[q] += part[q]
