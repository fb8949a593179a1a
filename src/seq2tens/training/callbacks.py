"""What may watch a run: tables and curves."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from seq2tens.training.state import Row


class Callback:
    """Told of every epoch, on the first process only. An exception raised here ends the run."""

    def start(self, history: Sequence[Row]) -> None:
        """Before the first epoch; `history` has the epochs of the checkpoint that the run goes on from."""

    def epoch(self, row: Row, model: nn.Module) -> None:
        """After an epoch, before it is saved; `model` has the weights of its end."""

    def close(self) -> None:
        """At the end, however it comes about."""


class CSVLog(Callback):
    """The history as a table in a file, which a resumed run takes up where its checkpoint ends."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.empty = True

    def start(self, history: Sequence[Row]) -> None:
        """Write the epochs so far; what an older run has written after them goes."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("")
        self.empty = True
        for row in history:
            self._append(row)

    def epoch(self, row: Row, model: nn.Module) -> None:
        """Add a line."""
        self._append(row)

    def _append(self, row: Row) -> None:
        with open(self.path, "a", newline="") as file:
            writer = csv.DictWriter(file, list(row))
            if self.empty:
                writer.writeheader()
            writer.writerow(row)
        self.empty = False


class TensorBoardLog(Callback):
    """The history as curves for TensorBoard."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.writer_class = _summary_writer()
        self.writer: Any = None

    def start(self, history: Sequence[Row]) -> None:
        """Hide what an older run has written after the epochs so far."""
        self.writer = self.writer_class(str(self.folder), purge_step=len(history) + 1)

    def epoch(self, row: Row, model: nn.Module) -> None:
        """Add a point to each curve."""
        for name, value in row.items():
            if name != "epoch":
                self.writer.add_scalar(name, value, int(row["epoch"]))

    def close(self) -> None:
        """Write what is still in memory."""
        if self.writer is not None:
            self.writer.close()


def _summary_writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ImportError("TensorBoardLog needs tensorboard: pip install tensorboard") from error
    return SummaryWriter
