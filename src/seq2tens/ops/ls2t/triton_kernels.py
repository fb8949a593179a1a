# Triton has its own types, and its tuples grow by `+` only.
# mypy: disable-error-code="no-untyped-def, assignment"
# ruff: noqa: RUF005
"""The scan over one chunk of time and its adjoint, in Triton.

A lane is one functional of one sequence. It is independent of the other lanes, keeps its states in registers
and walks through the steps of the chunk. The compiler knows which state extends which: `WORDS[s][q]` holds
the factor of term q of state s and the state that this term starts from, and every loop over it is unrolled.
The empty word, whose value is 1, comes after the last state.

Only builtins of the language are used, none of its library functions. Whether these are compiled or
interpreted is decided when triton is first imported; for the kernels here, when this module is imported.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def load_all(pointer, stride, COUNT: tl.constexpr, inside):
    values = ()
    for i in tl.static_range(COUNT):
        values = values + (tl.load(pointer + i * stride, mask=inside, other=0.0),)
    return values


@triton.jit
def store_all(pointer, stride, values, inside):
    for i in tl.static_range(len(values)):
        tl.store(pointer + i * stride, values[i], mask=inside)


@triton.jit
def add_at(values, INDEX: tl.constexpr, term):
    """Return the tuple with `term` added to one entry; tuples cannot be changed in place."""
    return values[:INDEX] + (values[INDEX] + term,) + values[INDEX + 1 :]


@triton.jit
def fade(h, powers, counts, DEPTH: tl.constexpr):
    """Apply the decay of one step to the states; masked steps do not decay."""
    values = ()
    for s in tl.static_range(len(DEPTH)):
        gain = powers[DEPTH[s]]
        if counts is not None:
            gain = tl.where(counts, gain, 1.0)
        values = values + (h[s] * gain,)
    return values


@triton.jit
def advance(before, a, c, WORDS: tl.constexpr):
    """Take a step from the decayed states: each adds c_q · a_0 ··· a_q · (ancestor q + 1) for all terms q."""
    start = before + (1.0,)
    after = ()
    for s in tl.static_range(len(WORDS)):
        value = before[s]
        product = 1.0
        for q in tl.static_range(len(WORDS[s])):
            product = product * a[WORDS[s][q][0]]
            value = value + c[q] * product * start[WORDS[s][q][1]]
        after = after + (value,)
    return after


@triton.jit
def tails(start, a, c, WORD: tl.constexpr):
    """Return, for every q, what multiplies a_0 ··· a_q in a state; without division, as factors may be 0."""
    LAST: tl.constexpr = len(WORD) - 1
    value = c[LAST] * start[WORD[LAST][1]]
    values = (value,)
    for i in tl.static_range(LAST):
        value = c[LAST - 1 - i] * start[WORD[LAST - 1 - i][1]] + a[WORD[LAST - i][0]] * value
        values = (value,) + values
    return values


@triton.jit
def retreat(adjoint, before, a, c, dc, WORDS: tl.constexpr):
    """Adjoint of `advance`: return gradients of states and factors, and `dc` with its terms unless empty."""
    start = before + (1.0,)
    dstart = adjoint + (0.0,)
    da = (0.0,) * len(a)
    for s in tl.static_range(len(WORDS)):
        tail = tails(start, a, c, WORDS[s])
        flow = adjoint[s]
        for q in tl.static_range(len(WORDS[s])):
            da = add_at(da, WORDS[s][q][0], flow * tail[q])
            flow = flow * a[WORDS[s][q][0]]
            dstart = add_at(dstart, WORDS[s][q][1], c[q] * flow)
            if len(dc) > 0:
                dc = add_at(dc, q, flow * start[WORDS[s][q][1]])
    return dstart[: len(WORDS)], da, dc


@triton.jit(do_not_specialize=["batch", "steps", "out_stride"])
def scan(
    a_ptr, out_ptr, state_ptr, path_ptr, c_ptr, powers_ptr, mask_ptr, batch, width, steps, out_stride,
    WORDS: tl.constexpr, DEPTH: tl.constexpr, OUTPUT: tl.constexpr, COMPONENTS: tl.constexpr,
    TERMS: tl.constexpr, POWERS: tl.constexpr, REVERSE: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Advance the states over the chunk, in place; write levels (`out`) and states before steps (`path`)."""
    STATES: tl.constexpr = len(WORDS)
    lane = tl.program_id(0) * LANES + tl.arange(0, LANES)
    inside = lane < batch * width
    b = (lane // width).to(tl.int64)
    n = lane % width
    h = load_all(state_ptr + b * STATES * width + n, width, STATES, inside)
    c = load_all(c_ptr + n * 0, 1, TERMS, inside)
    if powers_ptr is not None:
        powers = load_all(powers_ptr + n, width, POWERS, inside)
    for i in range(steps):
        row = steps - 1 - i if REVERSE else i
        step = b * steps + row
        if path_ptr is not None:
            store_all(path_ptr + step * STATES * width + n, width, h, inside)
        before = h
        if powers_ptr is not None:
            counts = None if mask_ptr is None else tl.load(mask_ptr + step, mask=inside, other=0)
            before = fade(h, powers, counts, DEPTH)
        a = load_all(a_ptr + step * COMPONENTS * width + n, width, COMPONENTS, inside)
        h = advance(before, a, c, WORDS)
        if out_ptr is not None:
            for o in tl.static_range(len(OUTPUT)):
                level = out_ptr + b * out_stride + (row * len(OUTPUT) + o) * width + n
                tl.store(level, h[OUTPUT[o]], mask=inside)
    store_all(state_ptr + b * STATES * width + n, width, h, inside)


@triton.jit(do_not_specialize=["batch", "steps", "out_stride"])
def retrace(
    a_ptr, dout_ptr, adjoint_ptr, path_ptr, da_ptr, dc_ptr, dpowers_ptr, c_ptr, powers_ptr, mask_ptr,
    batch, width, steps, out_stride,
    WORDS: tl.constexpr, DEPTH: tl.constexpr, OUTPUT: tl.constexpr, COMPONENTS: tl.constexpr,
    TERMS: tl.constexpr, POWERS: tl.constexpr, REVERSE: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Adjoint of `scan`; each lane adds to its own sums `dc` and `dpowers`."""
    STATES: tl.constexpr = len(WORDS)
    lane = tl.program_id(0) * LANES + tl.arange(0, LANES)
    inside = lane < batch * width
    b = (lane // width).to(tl.int64)
    n = lane % width
    adjoint = load_all(adjoint_ptr + b * STATES * width + n, width, STATES, inside)
    c = load_all(c_ptr + n * 0, 1, TERMS, inside)
    dc = ()
    if dc_ptr is not None:
        dc = load_all(dc_ptr + b * TERMS * width + n, width, TERMS, inside)
    if powers_ptr is not None:
        powers = load_all(powers_ptr + n, width, POWERS, inside)
        dpowers = load_all(dpowers_ptr + b * POWERS * width + n, width, POWERS, inside)
    for i in range(steps):
        row = i if REVERSE else steps - 1 - i
        step = b * steps + row
        if dout_ptr is not None:
            for o in tl.static_range(len(OUTPUT)):
                level = dout_ptr + b * out_stride + (row * len(OUTPUT) + o) * width + n
                adjoint = add_at(adjoint, OUTPUT[o], tl.load(level, mask=inside, other=0.0))
        h = load_all(path_ptr + step * STATES * width + n, width, STATES, inside)
        a = load_all(a_ptr + step * COMPONENTS * width + n, width, COMPONENTS, inside)
        before = h
        if powers_ptr is not None:
            counts = None if mask_ptr is None else tl.load(mask_ptr + step, mask=inside, other=0)
            before = fade(h, powers, counts, DEPTH)
        adjoint, da, dc = retreat(adjoint, before, a, c, dc, WORDS)
        if powers_ptr is not None:
            for s in tl.static_range(STATES):
                term = adjoint[s] * h[s]
                if counts is not None:
                    term = tl.where(counts, term, 0.0)
                dpowers = add_at(dpowers, DEPTH[s], term)
            adjoint = fade(adjoint, powers, counts, DEPTH)
        store_all(da_ptr + step * COMPONENTS * width + n, width, da, inside)
    store_all(adjoint_ptr + b * STATES * width + n, width, adjoint, inside)
    if dc_ptr is not None:
        store_all(dc_ptr + b * TERMS * width + n, width, dc, inside)
    if powers_ptr is not None:
        store_all(dpowers_ptr + b * POWERS * width + n, width, dpowers, inside)
