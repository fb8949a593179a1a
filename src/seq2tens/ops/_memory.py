"""Large pages for large results: fresh memory otherwise costs a fault for every 4 KiB written."""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import lru_cache
from typing import Any

from torch import Tensor

_WORTH_IT = 2**25  # bytes; smaller blocks are recycled by the allocator


def use_large_pages(tensor: Tensor) -> None:
    """Ask the system for large pages behind a fresh tensor: a hint, which changes nothing if not taken."""
    size = tensor.numel() * tensor.element_size()
    if size < _WORTH_IT or sys.platform != "linux":
        return
    address = -(-tensor.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
    _madvise()(address, (tensor.data_ptr() + size - address) & -mmap.PAGESIZE, mmap.MADV_HUGEPAGE)


@lru_cache(maxsize=1)
def _madvise() -> Any:
    function = ctypes.CDLL(None).madvise
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return function
