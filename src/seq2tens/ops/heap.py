"""Memory that the C library keeps for later, given back to the system."""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache
from typing import Any


def trim_heap() -> None:
    """Give back what is free, where the C library can (glibc).

    Small tensors that stay, made while large ones come and go, leave holes in the heap that no large tensor
    fits in any more, so that the heap grows without end.
    """
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@lru_cache(maxsize=1)
def _malloc_trim() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
