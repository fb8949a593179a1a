"""Return free heap memory to the operating system."""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache
from typing import Any


def trim_heap() -> None:
    """Return the free memory of the heap to the operating system, if the C library can (glibc).

    Small long-lived tensors allocated between large short-lived ones fragment the heap: large tensors no
    longer fit into the gaps, and the heap keeps growing.
    """
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@lru_cache(maxsize=1)
def _malloc_trim() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
