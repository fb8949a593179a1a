"""How far a run is: a bar in a terminal, one line in a notebook, lines elsewhere, nothing if so asked."""

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

# False is short for silent, True for auto.
Style = Literal["auto", "bar", "lines", "silent"] | bool
# A log of thousands of short epochs helps nobody; a line that is written anew may change more often.
LINE_SECONDS, UPDATE_SECONDS = 5.0, 0.5


class Progress(Callback):
    """Shows nothing; the others do."""

    def advance(self, batches: int) -> None:
        """So many more batches are done."""


class Lines(Progress):
    """A line for the first and the last epoch, and in between one every few seconds."""

    def __init__(self, epochs: int, write: Callable[[str], None], every: float = LINE_SECONDS) -> None:
        self.epochs, self.write, self.every = epochs, write, every
        self.resumed, self.begin, self.shown = 0, time.monotonic(), -every
        self.pending = ""

    def start(self, history: Sequence[Row]) -> None:
        """The clock runs from here."""
        self.resumed, self.begin = len(history), time.monotonic()

    def epoch(self, row: Row, model: nn.Module) -> None:
        """Show the line, or hold it back in case it is the last."""
        seconds = time.monotonic() - self.begin
        self.pending = f"{describe(row, self.epochs)}  {self._left(row, seconds)}"
        if seconds - self.shown >= self.every:
            self._show()
            self.shown = seconds

    def close(self) -> None:
        """Show the last line."""
        self._show()

    def _left(self, row: Row, seconds: float) -> str:
        done = row["epoch"] - self.resumed
        return f"at most {clock(seconds / done * (self.epochs - row['epoch']))} left"

    def _show(self) -> None:
        if self.pending:
            self.write(self.pending)
        self.pending = ""


class Bar(Progress):
    """A bar with the time left, an upper bound where the run may stop early."""

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
        """Begin where the checkpoint ends."""
        text = describe(history[-1], self.epochs) if history else "training"
        done = len(history) * self.batches
        self.task = self.bar.add_task(text, total=self.epochs * self.batches, completed=done)
        self.bar.start()

    def advance(self, batches: int) -> None:
        """Move on."""
        self.bar.advance(self.task, batches)

    def epoch(self, row: Row, model: nn.Module) -> None:
        """Show the losses."""
        self.bar.update(self.task, description=describe(row, self.epochs))

    def close(self) -> None:
        """Leave the bar as it is."""
        self.bar.stop()


def make_progress(style: Style, epochs: int, batches: int, console: Any = None) -> Progress:
    """The progress display of that style."""
    console = console or Console(stderr=True)
    decided = decide(style, console)
    if decided == "silent":
        return Progress()
    if style != "lines" and in_notebook():
        return Lines(epochs, NotebookLine(), UPDATE_SECONDS)
    if decided == "bar":
        return Bar(epochs, batches, console)
    return Lines(epochs, partial(console.print, highlight=False, soft_wrap=True))


def in_notebook() -> bool:
    """Whether a kernel of IPython runs this code, so that what is printed goes to a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class NotebookLine:
    """One line of output that is written anew: a notebook keeps all that is printed."""

    def __init__(self) -> None:
        self.handle: Any = None

    def __call__(self, text: str) -> None:
        """Write the line, in place of what it was."""
        from IPython.display import display

        if self.handle is None:
            self.handle = display({"text/plain": text}, raw=True, display_id=True)
        else:
            self.handle.update({"text/plain": text}, raw=True)


def decide(style: Style, console: Console) -> Literal["bar", "lines", "silent"]:
    """What a style comes to; `"auto"` looks at whether stderr is a terminal."""
    if isinstance(style, bool):
        style = "auto" if style else "silent"
    check.choice("progress", style, ("auto", "bar", "lines", "silent"))
    if style != "auto":
        return style
    return "bar" if console.is_terminal else "lines"


def describe(row: Row, epochs: int) -> str:
    """An epoch in a few words."""
    shown = [
        f"{k.replace('_', ' ')} {v:.4g}" for k, v in row.items() if k not in ("epoch", "seconds", "rate")
    ]
    return f"epoch {int(row['epoch'])}/{epochs}  {'  '.join(shown)}"


def clock(seconds: float) -> str:
    """Hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
