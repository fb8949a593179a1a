"""Entry points of the kernels for other threads: C functions of one record, one for each pass and dtype.

Each is compiled when it is first asked for, hence the functions around them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import carray

from seq2tens.ops._kernels import backward, callback, forward


@lru_cache(maxsize=4)
def entry(name: str) -> Any:
    """The compiled `forward32`, `forward64`, `backward32` or `backward64`."""
    return globals()[f"_{name}"]()


def _forward32() -> Any:
    @callback
    def forward32(call):
        forward(carray(call, (1,))[0], np.float32(0))

    return forward32


def _forward64() -> Any:
    @callback
    def forward64(call):
        forward(carray(call, (1,))[0], np.float64(0))

    return forward64


def _backward32() -> Any:
    @callback
    def backward32(call):
        backward(carray(call, (1,))[0], np.float32(0))

    return backward32


def _backward64() -> Any:
    @callback
    def backward64(call):
        backward(carray(call, (1,))[0], np.float64(0))

    return backward64
