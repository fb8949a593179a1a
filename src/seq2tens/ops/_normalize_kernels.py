"""Batch statistics over the rows that count, forward and backward, compiled by numba on first use.

A task is a range of channels, each of `inner` neighbouring columns. Sums are float64 whatever the input.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import carray

from seq2tens.ops._kernel_tools import add_row, callback, compiled, memory, this_thread

_SIZES = "rows channels inner tasks eps scale momentum masked weighted biased rectified summed"
_ARRAYS = "x mask weight bias y mean variance running_mean running_variance shift addend dy dx dweight dbias"
_THREADS = "scratch scratch_size threads thread thread_number"
FIELDS = " ".join((_SIZES, _ARRAYS, _THREADS)).split()
CALL = np.dtype([(name, np.int64) for name in FIELDS])
AT = {name: position for position, name in enumerate(FIELDS)}

as_callback = callback(CALL)


@compiled
def spread(values, inner, columns):
    """A value per channel, to every column of it."""
    for c in range(values.shape[0]):
        for j in range(inner):
            columns[c * inner + j] = values[c]


@compiled
def fold(sums, inner, factor, totals):
    """Sums per column to sums per channel, times a factor."""
    for c in range(totals.shape[0]):
        total = 0.0
        for j in range(inner):
            total += sums[c * inner + j]
        totals[c] = total * factor


# Rows are views of their own: numba compiles loops over an offset plus a counter to single steps.


@compiled
def add_squares(sums, row, middle):
    for q in range(sums.shape[0]):
        d = row[q] - middle[q]
        sums[q] += d * d


@compiled
def add_products(sums, row, middle, other):
    for q in range(sums.shape[0]):
        sums[q] += other[q] * (row[q] - middle[q])


@compiled
def write_row(target, row, middle, factor, shift):
    for q in range(target.shape[0]):
        target[q] = (row[q] - middle[q]) * factor[q] + shift[q]


@compiled
def add_scaled(target, row, scale):
    for q in range(target.shape[0]):
        target[q] += row[q] * scale


@compiled
def write_gradient(target, row, middle, other, factor, level, slope):
    for q in range(target.shape[0]):
        target[q] = (other[q] - level[q] - (row[q] - middle[q]) * slope[q]) * factor[q]


@compiled
def rectify(row):
    for q in range(row.shape[0]):
        row[q] = max(row[q], row.dtype.type(0))


@compiled
def gate(target, row, output):
    """What of a gradient reaches beyond a rectifier with this output."""
    for q in range(target.shape[0]):
        target[q] = row[q] if output[q] > 0 else 0


@compiled
def share_of_rows(r, mask):
    """One over the number of values of a channel that count."""
    count = r.rows
    if r.masked:
        count = 0
        for i in range(r.rows):
            count += mask[i] != 0
    return 1.0 / (max(count, 1) * r.inner)


@compiled
def scales(r, low, high, variance, weight, factor):
    """What every column is multiplied with."""
    eps, whole = memory(r.eps, 1, np.float64(0))[0], memory(r.scale, 1, np.float64(0))[0]
    for c in range(low, high):
        scale = whole / np.sqrt(variance[c] + eps)
        for j in range((c - low) * r.inner, (c - low + 1) * r.inner):
            factor[j] = scale * weight[c] if r.weighted else scale


@compiled
def follow(r, low, high, mean, variance):
    """Let running statistics follow those of some channels, the mean with a constant that `x` lacks."""
    momentum, zero = memory(r.momentum, 1, np.float64(0))[0], mean.dtype.type(0)
    running_mean = memory(r.running_mean, r.channels, zero)
    running_variance = memory(r.running_variance, r.channels, zero)
    shift = memory(r.shift, r.channels if r.shift else 0, zero)
    for c in range(low, high):
        whole = mean[c] + shift[c] if r.shift else mean[c]
        running_mean[c] += momentum * (whole - running_mean[c])
        running_variance[c] += momentum * (variance[c] - running_variance[c])


@compiled
def forward(r, zero):
    """All tasks of this thread; `zero` is of the input's dtype."""
    width, wide = r.channels * r.inner, np.float64(0)
    x, y = memory(r.x, r.rows * width, zero), memory(r.y, r.rows * width, zero)
    mask = memory(r.mask, r.rows if r.masked else 0, np.uint8(0))
    weight = memory(r.weight, r.channels if r.weighted else 0, zero)
    bias = memory(r.bias, r.channels if r.biased else 0, zero)
    mean, variance = memory(r.mean, r.channels, zero), memory(r.variance, r.channels, zero)
    addend = memory(r.addend, r.rows * width if r.summed else 0, zero)
    scale = x.dtype.type(memory(r.scale, 1, wide)[0])
    thread = this_thread(r)
    share = share_of_rows(r, mask)
    for task in range(thread, r.tasks, r.threads):
        low, high = r.channels * task // r.tasks, r.channels * (task + 1) // r.tasks
        n, start = (high - low) * r.inner, low * r.inner
        sums = memory(r.scratch + thread * r.scratch_size, n, wide)
        lines = memory(r.scratch + thread * r.scratch_size + 8 * n, 3 * n, zero)
        middle, factor, shift = lines[:n], lines[n : 2 * n], lines[2 * n :]
        sums[:] = 0
        for i in range(r.rows):
            if not r.masked or mask[i]:
                add_row(sums, x[i * width + start : i * width + start + n])
        fold(sums, r.inner, share, mean[low:high])
        spread(mean[low:high], r.inner, middle)
        sums[:] = 0
        for i in range(r.rows):
            if not r.masked or mask[i]:
                add_squares(sums, x[i * width + start : i * width + start + n], middle)
        fold(sums, r.inner, share, variance[low:high])
        if r.running_mean:
            follow(r, low, high, mean, variance)
        scales(r, low, high, variance, weight, factor)
        shift[:] = 0
        if r.biased:
            spread(bias[low:high], r.inner, shift)
            for q in range(n):
                shift[q] *= scale
        for i in range(r.rows):
            here, there = i * width + start, i * width + start + n
            if not r.masked or mask[i]:
                write_row(y[here:there], x[here:there], middle, factor, shift)
                if r.rectified:
                    rectify(y[here:there])
                if r.summed:
                    add_scaled(y[here:there], addend[here:there], scale)
            else:
                y[here:there] = 0


@compiled
def backward(r, zero):
    """Adjoint of `forward`: what mean and spread took away is given back by the rows that count."""
    width, wide = r.channels * r.inner, np.float64(0)
    x, dy = memory(r.x, r.rows * width, zero), memory(r.dy, r.rows * width, zero)
    dx, y = memory(r.dx, r.rows * width, zero), memory(r.y, r.rows * width if r.rectified else 0, zero)
    mask = memory(r.mask, r.rows if r.masked else 0, np.uint8(0))
    weight = memory(r.weight, r.channels if r.weighted else 0, zero)
    mean, variance = memory(r.mean, r.channels, zero), memory(r.variance, r.channels, zero)
    dweight, dbias = memory(r.dweight, r.channels, zero), memory(r.dbias, r.channels, zero)
    eps, whole = memory(r.eps, 1, wide)[0], memory(r.scale, 1, wide)[0]
    thread = this_thread(r)
    share = share_of_rows(r, mask)
    for task in range(thread, r.tasks, r.threads):
        low, high = r.channels * task // r.tasks, r.channels * (task + 1) // r.tasks
        n, start = (high - low) * r.inner, low * r.inner
        sums = memory(r.scratch + thread * r.scratch_size, 2 * n, wide)
        plain, crossed = sums[:n], sums[n:]
        lines = memory(r.scratch + thread * r.scratch_size + 16 * n, 4 * n, zero)
        middle, factor, level, slope = lines[:n], lines[n : 2 * n], lines[2 * n : 3 * n], lines[3 * n :]
        spread(mean[low:high], r.inner, middle)
        scales(r, low, high, variance, weight, factor)
        sums[:] = 0
        for i in range(r.rows):
            if not r.masked or mask[i]:
                here, there = i * width + start, i * width + start + n
                passed = dy[here:there]
                if r.rectified:  # until the end dx holds what passes
                    passed = dx[here:there]
                    gate(passed, dy[here:there], y[here:there])
                add_row(plain, passed)
                add_products(crossed, x[here:there], middle, passed)
        fold(plain, r.inner, 1.0, dbias[low:high])
        fold(crossed, r.inner, 1.0, dweight[low:high])
        for c in range(low, high):
            scale = 1.0 / np.sqrt(variance[c] + eps)
            for j in range((c - low) * r.inner, (c - low + 1) * r.inner):
                level[j] = dbias[c] * share
                slope[j] = dweight[c] * share * scale * scale
            dweight[c] *= whole * scale
            dbias[c] *= whole
        for i in range(r.rows):
            here, there = i * width + start, i * width + start + n
            if not r.masked or mask[i]:
                passed = dx[here:there] if r.rectified else dy[here:there]
                write_gradient(dx[here:there], x[here:there], middle, passed, factor, level, slope)
            else:
                dx[here:there] = 0


@lru_cache(maxsize=4)
def entry(name: str) -> Any:
    """The compiled `forward32`, `forward64`, `backward32` or `backward64`, as C functions of one record."""
    return globals()[f"_{name}"]()


def _forward32() -> Any:
    @as_callback
    def forward32(call):
        forward(carray(call, (1,))[0], np.float32(0))

    return forward32


def _forward64() -> Any:
    @as_callback
    def forward64(call):
        forward(carray(call, (1,))[0], np.float64(0))

    return forward64


def _backward32() -> Any:
    @as_callback
    def backward32(call):
        backward(carray(call, (1,))[0], np.float32(0))

    return backward32


def _backward64() -> Any:
    @as_callback
    def backward64(call):
        backward(carray(call, (1,))[0], np.float64(0))

    return backward64
