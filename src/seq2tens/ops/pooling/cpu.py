"""Pooling of blocks on CPUs: the kernel of `csrc/pooling.cpp`."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from seq2tens.ops import native
from seq2tens.ops.dispatch import forward_unsupported
from seq2tens.ops.pooling.reference import CONTEST_STEEPNESS

if TYPE_CHECKING:
    from seq2tens.ops.pooling import Blocks

WIDTH = 32
GROUPS = (1, 2, 4)


class PooledBlocks(native.Struct):
    """A call of `pool_blocks`; see `csrc/seq2tens.h`."""

    name = "seq2tens_pooled_blocks"
    _fields_ = (
        *native.fields("threads batch length channels blocks taps chosen order groups"),
        *native.fields("steepness contest_steepness", ctypes.c_double),
        *native.arrays("paths lengths source channel dilation weight picks gains decay threshold out"),
    )


def unsupported(paths: Tensor, lengths: Tensor, blocks: Blocks, groups: int, steepness: float) -> str | None:
    """Return why the kernel cannot handle these arguments; None if it can."""
    if blocks.taps.shape[3] != WIDTH or groups not in GROUPS:
        return f"a block must have {WIDTH} convolutions, and 1, 2 or 4 groups"
    numbers = (paths, blocks.taps, blocks.gains, blocks.decay, blocks.threshold)
    if any(tensor.dtype != torch.float32 for tensor in numbers):
        return "a tensor is not float32"
    return forward_unsupported(paths, lengths, blocks)


def pool_blocks(paths: Tensor, lengths: Tensor, blocks: Blocks, groups: int, steepness: float) -> Tensor:
    """Same signature and meaning as `reference.pool_blocks`."""
    _, batch, length, channels = paths.shape
    count, taps, chosen, width = blocks.taps.shape
    order = blocks.picks.shape[1]
    arrays = [t if t.is_floating_point() else t.long() for t in (paths, lengths, *blocks)]
    out = paths.new_empty(batch, count, 5 + 2 * order - 1, width)
    sizes = (batch, length, channels, count, taps, chosen, order, groups)
    numbers = (native.threads(), *sizes, steepness, CONTEST_STEEPNESS)
    native.run_kernel("pool_blocks", PooledBlocks.of(numbers, *arrays, out))
    return out
