"""Progress display: a bar in a terminal, one updated line in a notebook, lines elsewhere, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from torch import nn

from seq2tens import _checks as check
from seq2tens.training.callbacks import Callback
from seq2tens.training.state import Row

# False stands for "silent", True for "auto".
ProgressStyle = Literal["auto", "bar", "lines", "silent"] | bool
# Seconds between lines of a log, which should stay short, and between updates of a line in place.
LINE_SECONDS, UPDATE_SECONDS = 5.0, 0.5


class Progress(Callback):
    """A progress display that shows nothing; base class of the others."""

    def advance(self, batches: int) -> None:
        """Called when `batches` more batches are done."""


class Lines(Progress):
    """A line for the first and the last epoch, and one every few seconds in between."""

    def __init__(self, epochs: int, write: Callable[[str], None], every: float = LINE_SECONDS) -> None:
        self.epochs, self.write, self.every = epochs, write, every
        self.resumed, self.started, self.shown = 0, time.monotonic(), -every
        self.pending = ""

    def start(self, history: Sequence[Row]) -> None:
        """Start the clock."""
        self.resumed, self.started = len(history), time.monotonic()

    def epoch(self, row: Row, model: nn.Module) -> None:
        """Show the line, or keep it in case it is the last."""
        seconds = time.monotonic() - self.started
        self.pending = f"{describe(row, self.epochs)}  {self._time_left(row, seconds)}"
        if seconds - self.shown >= self.every:
            self._show()
            self.shown = seconds

    def close(self) -> None:
        """Show the last line."""
        self._show()

    def _time_left(self, row: Row, seconds: float) -> str:
        done = row["epoch"] - self.resumed
        return f"at most {format_seconds(seconds / done * (self.epochs - row['epoch']))} left"

    def _show(self) -> None:
        if self.pending:
            self.write(self.pending)
        self.pending = ""


class Bar(Progress):
    """A progress bar with the remaining time, an upper bound if the run may stop early."""

    def __init__(self, epochs: int, batches: int, console: Console) -> None:
        self.epochs, self.batches = epochs, batches
        self.bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
        )

    def start(self, history: Sequence[Row]) -> None:
        """Start the bar at the end of the checkpoint."""
        text = describe(history[-1], self.epochs) if history else "training"
        done = len(history) * self.batches
        self.task = self.bar.add_task(text, total=self.epochs * self.batches, completed=done)
        self.bar.start()

    def advance(self, batches: int) -> None:
        """Advance the bar."""
        self.bar.advance(self.task, batches)

    def epoch(self, row: Row, model: nn.Module) -> None:
        """Show the losses."""
        self.bar.update(self.task, description=describe(row, self.epochs))

    def close(self) -> None:
        """Stop updating the bar."""
        self.bar.stop()


def make_progress(style: ProgressStyle, epochs: int, batches: int, console: Any = None) -> Progress:
    """Return the progress display for a style."""
    console = console or Console(stderr=True)
    decided = resolve_style(style, console)
    if decided == "silent":
        return Progress()
    if style != "lines" and in_notebook():
        return Lines(epochs, NotebookLine(), UPDATE_SECONDS)
    if decided == "bar":
        return Bar(epochs, batches, console)
    return Lines(epochs, partial(console.print, highlight=False, soft_wrap=True))


def in_notebook() -> bool:
    """Whether this code runs in an IPython kernel, such that its output goes to a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class NotebookLine:
    """One line of output that is updated in place, because a notebook keeps everything that is printed."""

    def __init__(self) -> None:
        self.handle: Any = None

    def __call__(self, text: str) -> None:
        """Write the line, or replace the earlier one."""
        from IPython.display import display

        if self.handle is None:
            self.handle = display({"text/plain": text}, raw=True, display_id=True)
        else:
            self.handle.update({"text/plain": text}, raw=True)


def resolve_style(style: ProgressStyle, console: Console) -> Literal["bar", "lines", "silent"]:
    """Resolve a style; `"auto"` depends on whether stderr is a terminal."""
    if isinstance(style, bool):
        style = "auto" if style else "silent"
    check.choice("progress", style, ("auto", "bar", "lines", "silent"))
    if style != "auto":
        return style
    return "bar" if console.is_terminal else "lines"


def describe(row: Row, epochs: int) -> str:
    """Describe an epoch in one line."""
    shown = [
        f"{k.replace('_', ' ')} {v:.4g}" for k, v in row.items() if k not in ("epoch", "seconds", "rate")
    ]
    return f"epoch {int(row['epoch'])}/{epochs}  {'  '.join(shown)}"


def format_seconds(seconds: float) -> str:
    """Format seconds as hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
