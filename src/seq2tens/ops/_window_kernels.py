"""All windows of a sequence in two scans of every block of steps, compiled by numba on first use.

A block is as long as a window. One scan goes from its end to its beginning and keeps the values of the steps
that it has seen; the other goes through the next block and joins both to the window that ends there. Scans
are float64 whatever the input. Word 0 is the empty one, whose value is 1; the values of word w are
h[w · width : (w + 1) · width], and `width` is a multiple of 8.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import carray

from seq2tens.ops._kernel_tools import callback, compiled, memory, this_thread
from seq2tens.ops._lanes import WIDE, add, fill_wide, fma, load_wide, store, times

_SIZES = "batch steps window starts before stride rows components width words states levels lift_order plain"
_ARRAYS = "a out ends order length first rest last parent output cut_from cut_left cut_right coefficients"
_THREADS = "tasks blocks scratch scratch_size threads thread thread_number"
FIELDS = " ".join((_SIZES, _ARRAYS, _THREADS)).split()
CALL = np.dtype([(name, np.int64) for name in FIELDS])
AT = {name: position for position, name in enumerate(FIELDS)}

as_callback = callback(CALL)


@compiled
def clear(h, width):
    """Nothing has been seen: 1 for the empty word, else 0."""
    for q in range(0, h.shape[0], WIDE):
        store(h, q, fill_wide(1.0 if q < width else 0.0))


@compiled
def extend(h, a, row, letter, shorter, order, width):
    """Put one step at an end of what has been seen: h_w += a_letter · h_shorter, long words first.

    At the right end a word's letter is its last one, at the left end its first one.
    """
    for index in range(order.shape[0]):
        word = order[index]
        here, there, column = word * width, shorter[word] * width, row + letter[word] * width
        for q in range(0, width, WIDE):
            value = fma(load_wide(a, column + q), load_wide(h, there + q), load_wide(h, here + q))
            store(h, here + q, value)


@compiled
def extend_lifted(h, a, row, letter, shorter, order, length, coefficients, width):
    """`extend` where a step may meet several letters."""
    for index in range(order.shape[0]):
        word = order[index]
        for q in range(0, width, WIDE):
            value, product, node = load_wide(h, word * width + q), fill_wide(1.0), word
            for j in range(min(coefficients.shape[0], length[word])):
                product = times(product, load_wide(a, row + letter[node] * width + q))
                node = shorter[node]
                weighted = times(fill_wide(coefficients[j]), product)
                value = fma(weighted, load_wide(h, node * width + q), value)
            store(h, word * width + q, value)


@compiled
def write_window(out, position, ends, left, h, output, cut_from, cut_left, cut_right, width):
    """Levels of a window: words on its left part, on its right part, and their parts on both."""
    for level in range(output.shape[0]):
        word = output[level]
        for q in range(0, width, WIDE):
            value = add(load_wide(ends, left + (word - 1) * width + q), load_wide(h, word * width + q))
            for cut in range(cut_from[word], cut_from[word + 1]):
                part = load_wide(ends, left + (cut_left[cut] - 1) * width + q)
                value = fma(part, load_wide(h, cut_right[cut] * width + q), value)
            store(out, position + level * width + q, value)


@compiled
def run(r, zero):
    """All tasks of this thread, each a range of blocks; `zero` is of the input's dtype."""
    width, like, wide = r.width, np.int64(0), np.float64(0)
    row, size = r.components * width, r.states * width
    a = memory(r.a, r.batch * r.steps * row, zero)
    out = memory(r.out, r.batch * r.rows * r.levels * width, zero)
    order, length = memory(r.order, r.words, like), memory(r.length, r.words + 1, like)
    first, rest = memory(r.first, r.words + 1, like), memory(r.rest, r.words + 1, like)
    last, parent = memory(r.last, r.words + 1, like), memory(r.parent, r.words + 1, like)
    output, cut_from = memory(r.output, r.levels, like), memory(r.cut_from, r.words + 2, like)
    cuts = cut_from[r.words + 1]
    cut_left, cut_right = memory(r.cut_left, cuts, like), memory(r.cut_right, cuts, like)
    coefficients = memory(r.coefficients, r.lift_order, wide)
    thread = this_thread(r)
    h = memory(r.scratch + thread * r.scratch_size, (r.words + 1) * width, wide)
    most = min(r.window, r.starts)
    ends = memory(r.ends, r.threads * most * size, zero)[thread * most * size :]
    total = r.batch * r.blocks
    for task in range(thread, r.tasks, r.threads):
        for block in range(total * task // r.tasks, total * (task + 1) // r.tasks):
            sequence, begin = block // r.blocks, block % r.blocks * r.window
            starts = min(r.window, r.starts - begin)
            base = (sequence * r.steps + begin) * row
            clear(h, width)
            for t in range(r.window - 1, -1, -1):
                if r.plain:
                    extend(h, a, base + t * row, first, rest, order, width)
                else:
                    extend_lifted(h, a, base + t * row, first, rest, order, length, coefficients, width)
                if t < starts:
                    for q in range(0, size, WIDE):
                        store(ends, t * size + q, load_wide(h, width + q))
            clear(h, width)
            for t in range(starts):
                place = r.before + begin + t
                if place % r.stride == 0:
                    position = (sequence * r.rows + place // r.stride) * r.levels * width
                    write_window(
                        out, position, ends, t * size, h, output, cut_from, cut_left, cut_right, width
                    )  # fmt: skip
                if t + 1 < starts:
                    step = base + (r.window + t) * row
                    if r.plain:
                        extend(h, a, step, last, parent, order, width)
                    else:
                        extend_lifted(h, a, step, last, parent, order, length, coefficients, width)


@lru_cache(maxsize=2)
def entry(bits: int) -> Any:
    """The kernel for float32 or float64 as a C function of one record."""
    return _windows32() if bits == 32 else _windows64()


def _windows32() -> Any:
    @as_callback
    def windows32(call):
        run(carray(call, (1,))[0], np.float32(0))

    return windows32


def _windows64() -> Any:
    @as_callback
    def windows64(call):
        run(carray(call, (1,))[0], np.float64(0))

    return windows64
