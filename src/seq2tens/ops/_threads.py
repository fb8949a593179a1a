"""Run a compiled function on torch's own threads.

torch's idle OpenMP threads wait actively for milliseconds, so threads of our own would have to share cores
with them. Where torch brings GNU OpenMP its threads do the work; elsewhere a small pool does.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

_Entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_pool: ThreadPoolExecutor | None = None
_forked = False


def _after_fork() -> None:
    global _pool, _forked
    _pool, _forked = None, True  # a child process has none of its parent's threads


os.register_at_fork(after_in_child=_after_fork)


def launch(address: int, fields: dict[str, int], record: np.dtype, tasks: int) -> None:
    """Call the C function at `address` on a record of these fields from as many threads as torch may use.

    Thread i does tasks i, i + threads, …; what a task computes must not depend on who runs it.
    """
    threads = 1 if _forked else min(torch.get_num_threads(), tasks)
    fields["threads"], fields["scratch"] = threads, _scratch(threads * fields["scratch_size"])
    parallel, number = openmp() if threads > 1 else (None, 0)
    fields["thread_number"] = number
    call = np.array(list(fields.values()), np.int64)
    if threads == 1:
        _Entry(address)(call.ctypes.data)
    elif parallel is None:
        _run_in_pool(_Entry(address), call.view(record), threads)
    else:
        parallel(address, call.ctypes.data, threads, 0)


_kept = threading.local()


def _scratch(size: int) -> int:
    """Address of at least `size` bytes at a cache line, kept for the next call of this thread."""
    if getattr(_kept, "size", 0) < size:
        _kept.memory = np.empty(size + 64, np.uint8)
        _kept.size = size
    return -(-_kept.memory.ctypes.data // 64) * 64


@lru_cache(maxsize=1)
def openmp() -> tuple[Callable[[int, int, int, int], None] | None, int]:
    """GNU OpenMP's way to start a parallel region, and the address of its thread number; else (None, 0)."""
    for path in (Path(torch.__file__).parent / "lib").glob("libgomp*.so*"):
        library = ctypes.CDLL(str(path))
        library.GOMP_parallel.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
        library.GOMP_parallel.restype = None
        return library.GOMP_parallel, ctypes.cast(library.omp_get_thread_num, ctypes.c_void_p).value or 0
    return None, 0


def _run_in_pool(function: Any, call: np.ndarray, threads: int) -> None:
    global _pool
    if _pool is None or _pool._max_workers < threads - 1:
        _pool = ThreadPoolExecutor(threads - 1, thread_name_prefix="seq2tens")
    calls = [call.copy() for _ in range(threads)]
    for i, own in enumerate(calls):
        own["thread"] = i
    others = [_pool.submit(function, own.ctypes.data) for own in calls[1:]]
    function(calls[0].ctypes.data)
    for other in others:
        other.result()
