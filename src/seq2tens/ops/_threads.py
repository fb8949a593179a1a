"""A few long-lived threads for kernels that release the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

_pool: ThreadPoolExecutor | None = None


def _forget_pool() -> None:
    global _pool
    _pool = None


os.register_at_fork(after_in_child=_forget_pool)  # a child process has none of its parent's threads


def run_all(function: Callable[..., object], tasks: Sequence[tuple[Any, ...]], parallel: bool) -> None:
    """Call the function on every task, on as many threads as torch may use.

    Tasks are dealt out in turn. What a task computes must not depend on who runs it.
    """
    threads = min(torch.get_num_threads(), len(tasks)) if parallel else 1
    if threads <= 1:
        return _run(function, tasks)
    global _pool
    if _pool is None or _pool._max_workers < threads - 1:
        _pool = ThreadPoolExecutor(threads - 1, thread_name_prefix="seq2tens")
    others = [_pool.submit(_run, function, tasks[i::threads]) for i in range(1, threads)]
    _run(function, tasks[::threads])
    for other in others:
        other.result()
    return None


def _run(function: Callable[..., object], tasks: Sequence[tuple[Any, ...]]) -> None:
    for task in tasks:
        function(*task)
