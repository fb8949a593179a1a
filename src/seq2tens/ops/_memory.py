"""Memory for large results, used again once a result is gone.

Fresh memory costs a page fault for every 4 KiB written, which can take longer than a whole layer. So large
results come from blocks with large pages, and blocks are kept for the next call, up to a sixteenth of the
machine's memory.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import sys
import weakref
from collections import deque
from typing import Any

import numpy as np
import torch
from torch import Tensor

_WORTH_IT = 2**21  # bytes; smaller blocks are recycled well by the allocator
_WORTH_IT_FOR_A_WHILE = 2**18  # but not always, and the rest of a large page is not lost for long
_KEPT = os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE // 16 if hasattr(os, "sysconf") else 2**28
_LARGE_PAGE = 2**21
_ADVICE = getattr(mmap, "MADV_HUGEPAGE", None) if sys.platform == "linux" else None
# only private memory gets large pages
_PRIVATE: dict[str, int] = {} if sys.platform == "win32" else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}
_NUMBERS: dict[torch.dtype, tuple[int, Any]] = {
    torch.float32: (4, np.dtype(np.float32)),
    torch.float64: (8, np.dtype(np.float64)),
}


class _Block:
    """Memory that may have large pages, which begin at `start`."""

    def __init__(self, size: int) -> None:
        self.pages = mmap.mmap(-1, size, **_PRIVATE)
        if _ADVICE is not None:
            self.pages.madvise(_ADVICE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.pages))
        self.offset = -address % _LARGE_PAGE
        self.start = address + self.offset

    def __len__(self) -> int:
        return len(self.pages)


_free: deque[_Block] = deque()

# Where algorithms shall be deterministic, all memory is torch's, which may fill it with NaN to be seen.


class Workspace:
    """Memory without a tensor around it, which would take longer to make than to find the memory."""

    def __init__(self, block: _Block) -> None:
        self._block = block

    def data_ptr(self) -> int:
        """Its address."""
        return self._block.start

    def __del__(self) -> None:
        _give_back(self._block)


def workspace(size: int) -> Workspace | Tensor:
    """So many bytes that are gone after a pass or two."""
    if size < _WORTH_IT_FOR_A_WHILE or torch.are_deterministic_algorithms_enabled():
        return torch.empty(size, dtype=torch.uint8)
    return Workspace(_take(size))


def empty(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """An uninitialised CPU tensor; its memory comes back to us when its last user lets go of it."""
    count, (width, number) = math.prod(shape), _NUMBERS[dtype]
    size = count * width
    if size < _WORTH_IT or torch.are_deterministic_algorithms_enabled():
        return torch.empty(shape, dtype=dtype)
    block = _take(size)
    memory: Any = (ctypes.c_char * len(block)).from_buffer(block.pages)
    weakref.finalize(memory, _give_back, block).atexit = False
    return torch.from_numpy(np.frombuffer(memory, number, count, block.offset)).view(shape)


def _take(size: int) -> _Block:
    """A free block that fits and is not much too large, or a new one."""
    for _ in range(len(_free)):
        try:
            block = _free.popleft()
        except IndexError:  # another thread was faster
            break
        if size + _LARGE_PAGE <= len(block) <= 2 * size + _LARGE_PAGE:
            return block
        _free.append(block)
    return _Block(size + _LARGE_PAGE)


def _give_back(block: _Block) -> None:
    """Keep the block unless that is too much; the oldest go first."""
    _free.append(block)
    while sum(map(len, list(_free))) > _KEPT:
        try:
            _free.popleft()
        except IndexError:
            return
