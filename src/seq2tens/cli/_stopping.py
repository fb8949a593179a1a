"""Signals that end a verb between two rows, never within one."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import BinaryIO

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stopped(Exception):
    """A signal asks to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


class Stoppable:
    """Reads lines; a signal that comes in between is noted, and heard when the next line is waited for."""

    def __init__(self) -> None:
        self.waiting, self.signal = False, 0

    def note(self, number: int, frame: FrameType | None) -> None:
        """What happens when the signal comes."""
        self.signal = number
        if self.waiting:
            raise Stopped(number)

    def lines(self, source: BinaryIO) -> Iterator[str]:
        """The lines of a source, until it ends; raises `Stopped`."""
        while line := self._next(source):
            yield line.decode("utf-8", errors="replace")

    def _next(self, source: BinaryIO) -> bytes:
        self.waiting = True
        try:
            if self.signal:
                raise Stopped(self.signal)
            return source.readline()
        finally:
            self.waiting = False


@contextmanager
def stoppable() -> Iterator[Stoppable]:
    """Hear the signals as long as this lasts."""
    listener = Stoppable()
    before = {number: signal.signal(number, listener.note) for number in SIGNALS}
    try:
        yield listener
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
