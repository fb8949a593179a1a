"""Pooling on CPUs: the kernels of `csrc/pooling.cpp`."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from seq2tens.ops import native


class PathPool(native.Struct):
    """A call of `pool_path`; see `csrc/seq2tens.h`."""

    name = "seq2tens_path_pool"
    _fields_ = (
        *native.fields("is_double threads batch length width"),
        ("steepness", ctypes.c_double),
        *native.arrays("path lengths threshold share stretch changes"),
    )


class ContestPool(native.Struct):
    """A call of `pool_contest`; see `csrc/seq2tens.h`."""

    name = "seq2tens_contest_pool"
    _fields_ = (
        *native.fields("is_double threads batch length width groups"),
        ("steepness", ctypes.c_double),
        *native.arrays("path lengths wins losses"),
    )


def pool_path(path: Tensor, lengths: Tensor, threshold: Tensor, steepness: float) -> tuple[Tensor, ...]:
    """Same signature and meaning as `reference.pool_path`."""
    path, lengths, threshold = path.contiguous(), lengths.long().contiguous(), threshold.contiguous()
    results = _rows_each(path, 3)
    addresses = native.addresses(path, lengths, threshold, *results)
    native.run("pool_path", PathPool(*_sizes(path), steepness, *addresses))
    return results


def pool_contest(path: Tensor, lengths: Tensor, groups: int, steepness: float) -> tuple[Tensor, ...]:
    """Same signature and meaning as `reference.pool_contest`."""
    path, lengths = path.contiguous(), lengths.long().contiguous()
    results = _rows_each(path, 2)
    addresses = native.addresses(path, lengths, *results)
    native.run("pool_contest", ContestPool(*_sizes(path), groups, steepness, *addresses))
    return results


def _sizes(path: Tensor) -> tuple[int, ...]:
    return path.dtype == torch.float64, native.threads(), *path.shape


def _rows_each(path: Tensor, pools: int) -> tuple[Tensor, ...]:
    """Allocate `pools` results, each with a row for every sequence."""
    return tuple(path.new_empty(path.shape[0], path.shape[2]) for _ in range(pools))
