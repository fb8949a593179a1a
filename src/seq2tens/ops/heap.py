"""Memory and the operating system: huge pages for large results, and the return of free memory."""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import lru_cache
from typing import Any

from torch import Tensor

# Bytes of the smallest tensor whose memory is new each time: the C library keeps smaller blocks for reuse.
LARGE = 2**25


def use_huge_pages(*tensors: Tensor | None) -> None:
    """Ask Linux to back large new tensors by huge pages; nothing happens where it has none.

    A kernel that is bound by memory otherwise spends most of its time on the first access to each small page.
    """
    for tensor in tensors:
        size = 0 if tensor is None else tensor.nbytes
        if tensor is not None and size >= LARGE and (advise := _function("madvise")) is not None:
            start = -(-tensor.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
            end = tensor.data_ptr() + size
            advise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_HUGEPAGE)


def trim_heap() -> None:
    """Return the free memory of the heap to the operating system, if the C library can (glibc).

    Small long-lived tensors allocated between large short-lived ones fragment the heap: large tensors no
    longer fit into the gaps, and the heap keeps growing.
    """
    trim = _function("malloc_trim")
    if trim is not None:
        trim(0)


@lru_cache(maxsize=2)
def _function(name: str) -> Any:
    """Return a function of the C library of Linux, or None."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
