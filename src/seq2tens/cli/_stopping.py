"""Handle signals: a stream ends between two rows, never within one; a fit ends and says what was saved."""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, BinaryIO, NoReturn

import typer

from seq2tens.cli._shell import note, refusing

SIGNALS = (signal.SIGTERM, signal.SIGINT)
Handler = Callable[[int, FrameType | None], None]


class Stopped(Exception):
    """Raised when a signal asks the command to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


class Stoppable:
    """Reads lines; a signal that arrives between two reads takes effect at the next one."""

    def __init__(self) -> None:
        self.waiting, self.signal = False, 0

    def note(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: stop now if a line is being waited for, else remember it."""
        self.signal = number
        if self.waiting:
            raise Stopped(number)

    def lines(self, source: BinaryIO) -> Iterator[str]:
        """Yield the lines of a source until it ends; raises `Stopped` after a signal."""
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
    """Handle the signals inside this context."""
    listener = Stoppable()
    with _handled(listener.note):
        yield listener


@contextmanager
def training(estimator: Any, saved_message: Callable[[], str], **names: str) -> Iterator[None]:
    """Run a fit inside this context and print how long it took.

    A signal interrupts the fit and ends the command with a message; `saved_message` returns its second half,
    which says what was saved. `names` are the shell's names of arguments.
    """
    from seq2tens.estimators import InterruptedFitWarning
    from seq2tens.training import NonFiniteLoss

    received, start = [signal.SIGINT], time.perf_counter()

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        received.append(signal.Signals(number))
        raise KeyboardInterrupt

    try:
        with (
            _handled(interrupt),
            warnings.catch_warnings(),
            refusing(NonFiniteLoss, OSError, ImportError, **names),
        ):
            warnings.simplefilter("ignore", InterruptedFitWarning)
            yield
            if getattr(estimator, "interrupted_", False):
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        note(f"interrupted; {saved_message()}")
        raise typer.Exit(128 + received[-1]) from None
    typer.echo(f"trained in {time.perf_counter() - start:.1f} s")


@contextmanager
def _handled(handler: Handler) -> Iterator[None]:
    """Install a handler of signals, except those that are ignored, as in a background job of a shell."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    handled = [number for number in SIGNALS if before[number] is not signal.SIG_IGN]
    try:
        for number in handled:
            signal.signal(number, handler)
        yield
    finally:
        for number in handled:
            signal.signal(number, before[number])
