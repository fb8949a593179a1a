"""One chain, plain recursion: a level at a time over some steps, so that running sums stay in registers.

Inner products are replaced by states where they stand. Rows have `columns` numbers, level by level of `width`
each; rows follow each other by `delta` numbers, which is negative in reversed time. `base` and `change` are
indexed by state as in `_kernels`: level m, counted from 1, begins at m · width.
"""

from __future__ import annotations

from seq2tens.ops._kernel_tools import compiled
from seq2tens.ops._lanes import add, fma, lanes_of, load, store, stream, times

FOUR = 4  # vectors at a time: a sum needs as many cycles, which others can use


@compiled
def scan_level(rows, here, delta, count, initial, mask, turn, masked, change, base, bias, column, width):
    """States of one vector of functionals over `count` steps; those of the level below are there already.

    The first step's inner products are at rows[here:], `initial` is the row before it. With `masked` its
    entry of the mask is mask[abs(turn)], and the next ones follow in the direction of time.
    """
    c, b, k = load(change, width + column), load(base, width + column), load(bias, column)
    value, here = add(b, c), here + column
    if column < width:
        for i in range(count):
            if not masked or mask[turn + i if delta > 0 else turn - i]:
                c = add(c, add(load(rows, here), k))
                value = add(b, c)
            store(rows, here, value)
            here += delta
    else:
        below = load(initial, column - width)
        for i in range(count):
            if not masked or mask[turn + i if delta > 0 else turn - i]:
                c = fma(add(load(rows, here), k), below, c)
                value = add(b, c)
            below = load(rows, here - width)
            store(rows, here, value)
            here += delta
    store(change, width + column, c)


@compiled
def scan_level_by_four(rows, here, delta, count, initial, change, base, bias, column, width):
    """`scan_level` without a mask for four vectors, of level 2 or higher."""
    n = lanes_of(rows)
    state, here, under = width + column, here + column, column - width
    c0, c1 = load(change, state), load(change, state + n)
    c2, c3 = load(change, state + 2 * n), load(change, state + 3 * n)
    b0, b1 = load(base, state), load(base, state + n)
    b2, b3 = load(base, state + 2 * n), load(base, state + 3 * n)
    k0, k1 = load(bias, column), load(bias, column + n)
    k2, k3 = load(bias, column + 2 * n), load(bias, column + 3 * n)
    u0, u1 = load(initial, under), load(initial, under + n)
    u2, u3 = load(initial, under + 2 * n), load(initial, under + 3 * n)
    for _ in range(count):
        c0 = fma(add(load(rows, here), k0), u0, c0)
        c1 = fma(add(load(rows, here + n), k1), u1, c1)
        c2 = fma(add(load(rows, here + 2 * n), k2), u2, c2)
        c3 = fma(add(load(rows, here + 3 * n), k3), u3, c3)
        low = here - width
        u0, u1, u2, u3 = (
            load(rows, low),
            load(rows, low + n),
            load(rows, low + 2 * n),
            load(rows, low + 3 * n),
        )
        store(rows, here, add(b0, c0))
        store(rows, here + n, add(b1, c1))
        store(rows, here + 2 * n, add(b2, c2))
        store(rows, here + 3 * n, add(b3, c3))
        here += delta
    store(change, state, c0)
    store(change, state + n, c1)
    store(change, state + 2 * n, c2)
    store(change, state + 3 * n, c3)


@compiled
def retreat_level(
    path, old, dout, there, stride, initial, at_start, a, da, here, delta, count, mask, turn, masked, change,
    base, bias, column, width, top,
):  # fmt: skip
    """Adjoint of `scan_level`, from the last of `count` steps to the first.

    The last step's inner products are at a[here:], its gradient at dout[there:], and the level below, before
    that step, at path[old:]; rows of these two follow each other by `stride`. A block `at_start` ends with
    the very first step, before which the row is `initial`. What a step hands to the level below replaces
    its inner products, where the next call, for that level, finds it; the `top` level receives nothing.
    """
    c, b, k = load(change, width + column), load(base, width + column), load(bias, column)
    here = here + column
    for i in range(count):
        c = add(c, load(dout, there - i * stride))
        if not masked or mask[turn - i if delta > 0 else turn + i]:
            flow = add(b, c)
            if column < width:
                store(da, here, flow)
            else:
                if at_start and i == count - 1:
                    below = load(initial, column - width)
                else:
                    below = load(path, old - i * stride)
                store(da, here, times(flow, below))
                store(a, here, times(flow, add(load(a, here), k)))
            if not top:
                c = add(c, load(a, here + width))
        here -= delta
    store(change, width + column, c)


@compiled
def write_rows(rows, first, out, position, total, count, levels, width, past_caches):
    """Copy rows to `out`, where a level has `total` functionals, the first one from `position` on."""
    lanes = lanes_of(out)
    here = first * levels * width
    for _ in range(count):
        for level in range(levels):
            target = position + level * total
            for q in range(0, width, lanes):
                if past_caches:
                    stream(out, target + q, load(rows, here + q))
                else:
                    store(out, target + q, load(rows, here + q))
            here += width
        position += levels * total
