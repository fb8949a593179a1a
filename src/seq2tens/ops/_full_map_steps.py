"""One step of the full map and its adjoint, compiled by numba, for one sequence or for eight side by side.

A state holds the levels 0, 1, … one after the other in float64. It is given by its address; its rows have
one number, or `LANES` numbers of as many sequences if `wide`. Words are stored with their newest letter
first: the row of (a_1, …, a_m) in its level is a_m d^{m-1} + … + a_1, so multiplying by a step runs over long
contiguous pieces.
"""

from __future__ import annotations

from seq2tens.ops._kernel_tools import compiled
from seq2tens.ops._lanes import add, fma, times
from seq2tens.ops._lanes import fill_wide as fill
from seq2tens.ops._simd import LANES, load, load_one, store, store_one, total

NUMBER = 8  # bytes
VECTOR = NUMBER * LANES


@compiled
def extend(cur, x, c, level, new, n, d, wide):
    """new = cur ⊗ x + c · level, where cur has n rows; `new` may be `level` itself."""
    weight = fill(c)
    whole = n if wide else n // LANES
    for j in range(d):
        letter = load(x + VECTOR * j) if wide else fill(load_one(x + NUMBER * j))
        for i in range(whole):
            at = VECTOR * i
            store(new + at, fma(load(cur + at), letter, times(weight, load(level + at))))
        if not wide:
            for i in range(whole * LANES, n):
                at = NUMBER * i
                value = load_one(cur + at) * load_one(x + NUMBER * j) + c * load_one(level + at)
                store_one(new + at, value)
        piece = VECTOR * n if wide else NUMBER * n
        level, new = level + piece, new + piece


@compiled
def contract(g, x, cur, dcur, dx, n, d, wide):
    """Adjoint of cur ⊗ x: dcur = g contracted with x over the newest letter, dx += g contracted with cur."""
    if wide:
        _contract_wide(g, x, cur, dcur, dx, n, d)
    else:
        _contract_one(g, x, cur, dcur, dx, n, d)


@compiled
def _contract_wide(g, x, cur, dcur, dx, n, d):
    for i in range(n):
        value = fill(0.0)
        for j in range(d):
            value = fma(load(x + VECTOR * j), load(g + VECTOR * (n * j + i)), value)
        store(dcur + VECTOR * i, value)
    for j in range(d):
        at = dx + VECTOR * j
        store(at, add(load(at), _sums(cur, g + VECTOR * n * j, n)))


@compiled
def _contract_one(g, x, cur, dcur, dx, n, d):
    """The same for one sequence, where g may be large: it is read once."""
    whole = n // LANES
    for j in range(d):
        letter, dletter = load_one(x + NUMBER * j), load_one(dx + NUMBER * j)
        factor, sums = fill(letter), fill(0.0)
        for i in range(whole):
            at = VECTOR * i
            piece = load(g + at)
            sums = fma(load(cur + at), piece, sums)
            store(dcur + at, fma(factor, piece, load(dcur + at)) if j else times(factor, piece))
        for i in range(whole * LANES, n):
            at = NUMBER * i
            piece = load_one(g + at)
            dletter += load_one(cur + at) * piece
            store_one(dcur + at, letter * piece + load_one(dcur + at) if j else letter * piece)
        store_one(dx + NUMBER * j, dletter + total(sums))
        g += NUMBER * n


@compiled
def _sums(a, b, count):
    """Σ a · b over `count` vectors, lane by lane; in two sums, as each addition waits for the one before."""
    even, odd = fill(0.0), fill(0.0)
    for i in range(0, count - 1, 2):
        even = fma(load(a + VECTOR * i), load(b + VECTOR * i), even)
        odd = fma(load(a + VECTOR * i + VECTOR), load(b + VECTOR * i + VECTOR), odd)
    if count % 2:
        at = VECTOR * (count - 1)
        even = fma(load(a + at), load(b + at), even)
    return add(even, odd)


@compiled
def combine(a, source, b, other, target, count):
    """target = a · source + b · other, where `target` may be one of them."""
    whole = count // LANES
    for i in range(whole):
        at = VECTOR * i
        store(target + at, fma(fill(a), load(source + at), times(fill(b), load(other + at))))
    for i in range(whole * LANES, count):
        at = NUMBER * i
        store_one(target + at, a * load_one(source + at) + b * load_one(other + at))


@compiled
def dot(a, b, count):
    value = total(_sums(a, b, count // LANES))
    for i in range(count // LANES * LANES, count):
        value += load_one(a + NUMBER * i) * load_one(b + NUMBER * i)
    return value


@compiled
def horner(m, s, x, c, starts, chain, last, d, wide):
    """Put h at `last`, where the step adds h ⊗ x to level m >= 2 of the state s.

    h = c_1 S_{m-1} + (c_2 S_{m-2} + (c_3 S_{m-3} + …) ⊗ x) ⊗ x; the inner brackets go to levels of `chain`.
    """
    columns = LANES if wide else 1
    row = NUMBER * columns
    low = max(1, m - c.shape[0])
    at, count = row * starts[low], (starts[low + 1] - starts[low]) * columns
    cur = chain + at if low < m - 1 else last
    # S_0 = 1 enters as a multiple of x, if there are as many coefficients
    if c.shape[0] >= m:
        combine(c[m - 2], s + at, c[m - 1], x, cur, count)
    else:
        combine(c[m - low - 1], s + at, 0.0, s + at, cur, count)
    for k in range(low + 1, m):
        at, n = row * starts[k], starts[k] - starts[k - 1]
        new = chain + at if k < m - 1 else last
        extend(cur, x, c[m - k - 1], s + at, new, n, d, wide)
        cur = new


@compiled
def advance(s, new, x, c, starts, chain, order, d, wide):
    """Levels 1..order of new = s · φ(x); `new` may be s itself."""
    columns = LANES if wide else 1
    row = NUMBER * columns
    for m in range(order, 1, -1):  # each level needs the old values of those below
        last, at, n = chain + row * starts[m - 1], row * starts[m], starts[m] - starts[m - 1]
        horner(m, s, x, c, starts, chain, last, d, wide)
        extend(last, x, 1.0, s + at, new + at, n, d, wide)
    if order > 0:
        combine(c[0], x, 1.0, s + row, new + row, d * columns)


@compiled
def unwind(m, s, x, c, starts, chain, flow, dchain, g, dx, dc, d, wide):
    """Adjoint of `horner`: from `flow`, by h, to the state (g), the step and the coefficients."""
    columns = LANES if wide else 1
    row = NUMBER * columns
    low = max(1, m - c.shape[0])
    for k in range(m - 1, low - 1, -1):
        at, count = row * starts[k], (starts[k + 1] - starts[k]) * columns
        if dc.shape[0]:
            dc[m - k - 1] += dot(s + at, flow, count)
        combine(c[m - k - 1], flow, 1.0, g + at, g + at, count)
        if k > low:
            below, n = row * starts[k - 1], starts[k] - starts[k - 1]
            contract(flow, x, chain + below, dchain + below, dx, n, d, wide)
            flow = dchain + below
    if c.shape[0] >= m:
        add_letters(m, x, c, flow, dx, dc, d * columns)


@compiled
def add_letters(m, x, c, flow, dx, dc, count):
    """Adjoint of c_m x."""
    combine(c[m - 1], flow, 1.0, dx, dx, count)
    if dc.shape[0]:
        dc[m - 1] += dot(x, flow, count)


@compiled
def retreat(g, s, x, c, starts, chain, dchain, dx, dc, order, d, wide):
    """Adjoint of `advance`: g is by the state after the step, then by s, the state before it."""
    columns = LANES if wide else 1
    row = NUMBER * columns
    if order > 0:
        add_letters(1, x, c, g + row, dx, dc, d * columns)
    for m in range(2, order + 1):  # a level is read before those above add to it
        below, at, n = row * starts[m - 1], row * starts[m], starts[m] - starts[m - 1]
        horner(m, s, x, c, starts, chain, chain + below, d, wide)
        contract(g + at, x, chain + below, dchain + below, dx, n, d, wide)
        unwind(m, s, x, c, starts, chain, dchain + below, dchain, g, dx, dc, d, wide)
