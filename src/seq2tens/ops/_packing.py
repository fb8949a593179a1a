"""Steps of a block that count, side by side, and back to where they were, compiled by numba.

Rows lie in flat arrays; `turn` is the first step of a block in the mask.
"""

from __future__ import annotations

from seq2tens.ops._kernel_tools import compiled, copy


@compiled
def copy_rows(source, low, target, first, rows, columns):
    """Rows from row `low` on to those from row `first` on."""
    for row in range(rows):
        there, here = (first + row) * columns, (low + row) * columns
        copy(source[here : here + columns], target[there : there + columns])


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
            copy(x[there : there + n], row)
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
def undo_difference(dx, first, number, length, features):
    """From derivatives by increments to those by values, for some sequences."""
    for b in range(first, first + number):
        for here in range(b * length * features, ((b + 1) * length - 1) * features, features):
            row = dx[here : here + features]
            subtract(row, row, dx[here + features : here + 2 * features])
