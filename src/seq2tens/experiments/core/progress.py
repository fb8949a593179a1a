"""How far a run is: a line for every cell, and a bar under them in a terminal."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress
from typing_extensions import Self

from seq2tens.experiments.core.processes import Outcome
from seq2tens.training.progress import Style, clock, decide


class Progress:
    """Shows nothing; the others do."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, outcome: Outcome) -> None:
        """One more cell has come to its end."""


class Lines(Progress):
    """A line for every cell."""

    def __init__(self, total: int, console: Console) -> None:
        self.total, self.console = total, console
        self.done, self.begin = 0, time.monotonic()

    def show(self, outcome: Outcome) -> None:
        """Tell how it went, and what is left."""
        self.done += 1
        seconds = (time.monotonic() - self.begin) / self.done * (self.total - self.done)
        left = f", about {clock(seconds)} left" if self.done < self.total else ""
        line = f"{outcome.cell}: {describe(outcome)} ({self.done} of {self.total}{left})"
        self.console.print(line, highlight=False, soft_wrap=True, markup=False)


class Bar(Lines):
    """A bar below the lines."""

    def __init__(self, total: int, console: Console) -> None:
        super().__init__(total, console)
        self.bar = RichProgress(
            TextColumn("cells"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
        )
        self.task = self.bar.add_task("", total=total)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def show(self, outcome: Outcome) -> None:
        """The line, and the bar moves on."""
        super().show(outcome)
        self.bar.advance(self.task)


def make_progress(style: Style, total: int, console: Console | None = None) -> Progress:
    """The display of that style."""
    console = console or Console(stderr=True)
    match decide(style, console):
        case "bar":
            return Bar(total, console)
        case "lines":
            return Lines(total, console)
    return Progress()


def describe(outcome: Outcome) -> str:
    """How it went, in a few words."""
    if outcome.row is not None:
        return outcome.row.told
    return "left to another run" if outcome.reason is None else f"failed, {outcome.reason}"
