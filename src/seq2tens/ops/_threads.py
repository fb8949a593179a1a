"""Run a compiled function on torch's own threads.

torch's idle OpenMP threads wait actively for milliseconds, so threads of our own would have to share cores
with them. Where torch brings GNU OpenMP its threads do the work; elsewhere a small pool does.
"""

from __future__ import annotations

import ctypes
import os
import threading
from array import array
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

_pool: ThreadPoolExecutor | None = None
_forked = False


def _after_fork() -> None:
    global _pool, _forked
    _pool, _forked = None, True  # a child process has none of its parent's threads


os.register_at_fork(after_in_child=_after_fork)


def team() -> int:
    """How many threads torch may use."""
    return 1 if _forked else torch.get_num_threads()


def launch(address: int, record: array[int], at: dict[str, int], tasks: int) -> None:
    """Call the C function at `address` on a record from as many threads as torch may use.

    `at` tells where in the record each field stands. Thread i does tasks i, i + threads, …; what a task
    computes must not depend on who runs it.
    """
    threads = min(team(), tasks)
    parallel, number = openmp() if threads > 1 else (None, 0)
    record[at["threads"]], record[at["thread_number"]] = threads, number
    record[at["scratch"]] = scratch(threads * record[at["scratch_size"]])
    if threads == 1:
        _entry(address)(record.buffer_info()[0])
    elif parallel is None:
        _run_in_pool(_entry(address), record, at["thread"], threads)
    else:
        parallel(address, record.buffer_info()[0], threads, 0)


_entry = lru_cache(maxsize=64)(ctypes.CFUNCTYPE(None, ctypes.c_void_p))


_kept = threading.local()


def scratch(size: int) -> int:
    """Address of at least `size` bytes at a cache line, kept for the next call of this thread."""
    if getattr(_kept, "size", 0) < size:
        _kept.memory = np.empty(size + 64, np.uint8)
        _kept.size, _kept.start = size, -(-_kept.memory.ctypes.data // 64) * 64
    return _kept.start


@lru_cache(maxsize=1)
def openmp() -> tuple[Callable[[int, int, int, int], None] | None, int]:
    """GNU OpenMP's way to start a parallel region, and the address of its thread number; else (None, 0)."""
    for path in (Path(torch.__file__).parent / "lib").glob("libgomp*.so*"):
        library = ctypes.CDLL(str(path))
        library.GOMP_parallel.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
        library.GOMP_parallel.restype = None
        return library.GOMP_parallel, ctypes.cast(library.omp_get_thread_num, ctypes.c_void_p).value or 0
    return None, 0


def _run_in_pool(function: Any, record: array[int], place: int, threads: int) -> None:
    global _pool
    if _pool is None or _pool._max_workers < threads - 1:
        _pool = ThreadPoolExecutor(threads - 1, thread_name_prefix="seq2tens")
    records = [record[:] for _ in range(threads)]
    for i, own in enumerate(records):
        own[place] = i
    others = [_pool.submit(function, own.buffer_info()[0]) for own in records[1:]]
    function(records[0].buffer_info()[0])
    for other in others:
        other.result()
