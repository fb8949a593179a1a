"""Which process has gone: each says every second, in the store they all share, that it is there."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch.distributed as dist

SECONDS = 1.0
# What backends say when a process does not answer; torch has no common class for it.
LOST = re.compile(r"gloo|nccl|connection|timed out|timeout|socket", re.IGNORECASE)


class ProcessLost(RuntimeError):
    """A process has ended, or does not answer."""


@contextmanager
def watched() -> Iterator[None]:
    """Turn failures of communication inside into `ProcessLost`, which names the process that has gone."""
    pulse = Pulse()
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, dist.DistError) or LOST.search(str(error)):
            raise ProcessLost(pulse.explain()) from error
        raise
    finally:
        pulse.stop()


class Pulse:
    """A thread that counts in the store, and a look at the counts of the other processes."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.store = dist.distributed_c10d._get_default_store()
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._beat, daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """No more."""
        self.stopped.set()
        self.thread.join()

    def explain(self) -> str:
        """Which processes have gone, as far as that can be known."""
        me = f"(this is process {self.rank} of {self.size})"
        try:
            lost = self._silent()
            self.store.set(f"seq2tens/failed/{self.rank}", "1")
        except RuntimeError:
            return f"process 0, which all others report to, has ended or cannot be reached {me}"
        if not lost:
            return f"communication between the processes has failed, though all of them are there {me}"
        names = ", ".join(map(str, lost))
        return f"process {names} has ended or does not answer {me}; a fit with a `checkpoint` can go on"

    def _beat(self) -> None:
        count = 0
        try:
            while not self.stopped.is_set():
                self.store.set(f"seq2tens/alive/{self.rank}", str(count))
                count += 1
                self.stopped.wait(SECONDS)
        except RuntimeError:
            return  # nobody is left to be told

    def _silent(self) -> list[int]:
        """Processes whose count stands still; one that has reported a failure and left is not among them."""
        before = self._counts()
        time.sleep(4 * SECONDS)
        after = self._counts()
        still = [rank for rank in range(self.size) if before[rank] == after[rank]]
        return [rank for rank in still if not self.store.check([f"seq2tens/failed/{rank}"])]

    def _counts(self) -> list[bytes | None]:
        keys = [f"seq2tens/alive/{rank}" for rank in range(self.size)]
        return [self.store.get(key) if self.store.check([key]) else None for key in keys]
