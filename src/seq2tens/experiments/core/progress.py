"""Progress of a run: a line for each finished cell, with a bar below in a terminal."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress
from typing_extensions import Self

from seq2tens.experiments.core.processes import Outcome
from seq2tens.training import ProgressStyle, format_seconds, resolve_style


class Progress:
    """Shows cells as they finish; the styles are those of training."""

    def __init__(self, style: ProgressStyle, total: int, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self.style = resolve_style(style, self.console)
        self.total, self.done, self.started = total, 0, time.monotonic()
        columns = (TextColumn("cells"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.bar = RichProgress(*columns, console=self.console, disable=self.style != "bar")
        self.task = self.bar.add_task("", total=total)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def show(self, outcome: Outcome) -> None:
        """Show the outcome of a cell and the remaining time."""
        self.done += 1
        self.bar.advance(self.task)
        if self.style == "silent":
            return
        seconds = (time.monotonic() - self.started) / self.done * (self.total - self.done)
        left = f", about {format_seconds(seconds)} left" if self.done < self.total else ""
        line = f"{outcome.cell}: {outcome} ({self.done} of {self.total}{left})"
        self.console.print(line, highlight=False, soft_wrap=True, markup=False)
