"""Several kernels as one call: their records are written once per shape, and linked to memory at each call.

Between two kernels Python would take longer than a kernel does on a small batch.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from seq2tens.ops import _threads


class Program:
    """Steps in order. An address in a record is that of a base, known when it runs, plus an offset."""

    def __init__(self) -> None:
        self.words, self.steps, self.links = array("q"), array("q"), array("q")
        self.scratch = 0  # bytes per thread
        self.scratch_links: list[int] = []
        self.kept: list[Any] = []

    def record(self, fields: array[int]) -> int:
        """Add a record and return its place."""
        self.words.extend(fields)
        return len(self.words) - len(fields)

    def keep(self, memory: Any) -> None:
        """Let something live as long as the program, whose records know its address."""
        self.kept.append(memory)

    def link(self, place: int, base: int, offset: int = 0) -> None:
        """Let a word be the address of base number `base`, `offset` bytes further."""
        self.links.extend((place, base, offset))

    def step(self, function: int, record: int, tasks: int, at: Mapping[str, int]) -> None:
        """Call the function at an address on a record; `at` tells where its fields stand."""
        places = (at["threads"], at["thread"], at["thread_number"])
        self.steps.extend((function, record, tasks, *places))
        self.scratch_links.append(record + at["scratch"])
        self.scratch = max(self.scratch, self.words[record + at["scratch_size"]])

    def run(self, bases: list[int]) -> None:
        """Run all steps with these addresses."""
        threads = _threads.team()
        words = self.words[:]
        scratch = _threads.scratch(threads * self.scratch)
        for place in self.scratch_links:
            words[place] = scratch
        parallel, thread_number = _parallel() if threads > 1 else (0, 0)
        addresses = array("q", bases)
        call = array(
            "q",
            (
                words.buffer_info()[0], self.steps.buffer_info()[0], len(self.steps) // 6,
                self.links.buffer_info()[0], len(self.links) // 3, addresses.buffer_info()[0],
                parallel, thread_number, threads,
            ),
        )  # fmt: skip
        _entry()(call.buffer_info()[0])


def can_run() -> bool:
    """Whether torch's threads can be had without Python."""
    return _threads.team() == 1 or _threads.openmp()[0] is not None


@lru_cache(maxsize=1)
def _parallel() -> tuple[int, int]:
    function, thread_number = _threads.openmp()
    return ctypes.cast(function, ctypes.c_void_p).value or 0, thread_number  # type: ignore[arg-type]


@lru_cache(maxsize=1)
def _entry() -> Any:
    from seq2tens.ops._program_kernels import entry

    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(entry().address)
