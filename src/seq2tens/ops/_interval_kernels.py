"""Intervals from rows of tables, joined in the caches, compiled by numba on first use.

A row of a table holds the values of several words, `width` functionals each. Words are numbered from 1 on.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from seq2tens.ops._kernel_tools import callback, compiled, memory, this_thread
from seq2tens.ops._lanes import add, fma, lanes_of, load, store

_SIZES = "intervals states words levels width nothing end_size stretch_size beginning_size"
_TABLES = "ends stretches beginnings end left right beginning out"
_WORDS = "order length first rest last parent output cut_from cut_left cut_right"
_THREADS = "tasks scratch scratch_size threads thread thread_number"
FIELDS = " ".join((_SIZES, _TABLES, _WORDS, _THREADS)).split()
CALL = np.dtype([(name, np.int64) for name in FIELDS])
AT = {name: position for position, name in enumerate(FIELDS)}

AHEAD = 4  # intervals whose rows are asked for before they are needed

as_callback = callback(CALL)


@intrinsic
def fetch(typingctx, array, position):
    """Ask for a cache line in advance."""

    def codegen(context, builder, signature, args):
        memory = context.make_array(signature.args[0])(context, builder, args[0])
        place = builder.bitcast(builder.gep(memory.data, [args[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        name, kind = (
            "llvm.prefetch.p0i8",
            ir.FunctionType(ir.VoidType(), [place.type, number, number, number]),
        )
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        builder.call(function, [place, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


@compiled
def fetch_row(table, row, count):
    """Ask for the numbers of a row."""
    for k in range(0, count, lanes_of(table)):
        fetch(table, row + k)


@compiled
def copy(target, place, source, position, count):
    """Copy some numbers from one place to another."""
    lanes = lanes_of(target)
    whole = count - count % lanes
    for k in range(0, whole, lanes):
        store(target, place + k, load(source, position + k))
    for k in range(whole, count):
        target[place + k] = source[position + k]


@compiled
def join(h, table, row, order, states, cut_from, cut_left, cut_right, width):
    """Put steps after those seen so far: h_w += t_w + Σ h_left · t_right over all cuts, long words first."""
    lanes = lanes_of(h)
    whole = width - width % lanes
    for index in range(order.shape[0]):
        word = order[index]
        if word > states:
            continue
        here = (word - 1) * width
        for k in range(0, whole, lanes):
            value = add(load(h, here + k), load(table, row + here + k))
            for cut in range(cut_from[word], cut_from[word + 1]):
                part = load(h, (cut_left[cut] - 1) * width + k)
                value = fma(part, load(table, row + (cut_right[cut] - 1) * width + k), value)
            store(h, here + k, value)
        for k in range(whole, width):
            total = h[here + k] + table[row + here + k]
            for cut in range(cut_from[word], cut_from[word + 1]):
                total += h[(cut_left[cut] - 1) * width + k] * table[row + (cut_right[cut] - 1) * width + k]
            h[here + k] = total


@compiled
def run(r, zero):
    """All tasks of this thread, each a range of intervals; `zero` is of the tables' dtype."""
    like, width, size = np.int64(0), r.width, r.words * r.width
    ends, stretches = memory(r.ends, r.end_size, zero), memory(r.stretches, r.stretch_size, zero)
    beginnings = memory(r.beginnings, r.beginning_size, zero)
    end, left = memory(r.end, r.intervals, like), memory(r.left, r.intervals, like)
    right, beginning = memory(r.right, r.intervals, like), memory(r.beginning, r.intervals, like)
    out = memory(r.out, r.intervals * r.levels * width, zero)
    order, output = memory(r.order, r.words, like), memory(r.output, r.levels, like)
    cut_from = memory(r.cut_from, r.words + 2, like)
    cuts = cut_from[r.words + 1]
    cut_left, cut_right = memory(r.cut_left, cuts, like), memory(r.cut_right, cuts, like)
    thread = this_thread(r)
    h = memory(r.scratch + thread * r.scratch_size, r.states * width, zero)
    for task in range(thread, r.tasks, r.threads):
        for i in range(r.intervals * task // r.tasks, r.intervals * (task + 1) // r.tasks):
            ahead = min(i + AHEAD, r.intervals - 1)
            fetch_row(ends, end[ahead] * r.states * width, r.states * width)
            fetch_row(stretches, left[ahead] * size, size)
            fetch_row(stretches, right[ahead] * size, size)
            fetch_row(beginnings, beginning[ahead] * size, size)
            copy(h, 0, ends, end[i] * r.states * width, r.states * width)
            if left[i] != r.nothing:
                join(h, stretches, left[i] * size, order, r.states, cut_from, cut_left, cut_right, width)
            if right[i] != r.nothing:
                join(h, stretches, right[i] * size, order, r.states, cut_from, cut_left, cut_right, width)
            join(h, beginnings, beginning[i] * size, order, r.states, cut_from, cut_left, cut_right, width)
            for level in range(r.levels):
                place = (i * r.levels + level) * width
                copy(out, place, h, (output[level] - 1) * width, width)


@lru_cache(maxsize=2)
def entry(bits: int) -> Any:
    """The kernel for float32 or float64 as a C function of one record."""
    return _intervals32() if bits == 32 else _intervals64()


def _intervals32() -> Any:
    @as_callback
    def intervals32(call):
        run(carray(call, (1,))[0], np.float32(0))

    return intervals32


def _intervals64() -> Any:
    @as_callback
    def intervals64(call):
        run(carray(call, (1,))[0], np.float64(0))

    return intervals64
