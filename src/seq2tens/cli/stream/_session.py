"""A session that can be stopped and resumed: the stream, and what was read and written."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from seq2tens.cli._files import Output, csv_line
from seq2tens.cli._shell import UserError, refusing
from seq2tens.cli.stream._rows import Row, RowError

if TYPE_CHECKING:  # importing it takes seconds
    from seq2tens.estimators import ClassifierStream

NOTES = {"rows", "written", "id", "since", "format", "every"}


class Refused(RowError):
    """Raised if the rows since the last prediction cannot be fed; the stream is unchanged."""


class Sink:
    """The destination of predictions: stdout, a pipe, or a file, which is truncated to match a state."""

    def __init__(self, out: Output, written: int) -> None:
        self.out, self.written, self.regular = out, written, out.regular
        with refusing(OSError):
            self.file = _reopened(out.path, written) if self.regular and written else out.open()

    def write(self, line: str) -> None:
        """Write a line and flush it."""
        self.written += self.file.write(line.encode())
        self.file.flush()

    def close(self) -> None:
        """Close the file, unless it is stdout."""
        if self.file is not self.out.stdout:
            self.file.close()

    def sync(self) -> None:
        """Force a file to disk, before a state records its size."""
        if self.regular:
            os.fsync(self.file.fileno())


def _reopened(path: Path, written: int) -> BinaryIO:
    size = path.stat().st_size if path.exists() else 0
    if size < written:
        raise UserError(
            f"`--out` must hold the {written} bytes that were written before, got {size} in {path}"
        )
    file = path.open("r+b")
    file.truncate(written)
    file.seek(written)
    return file


@dataclass
class Session:
    """A stream, the rows that it has seen, and the predictions that were written."""

    stream: ClassifierStream
    format: str
    every: int
    path: Path | None  # of the state
    rows: int = 0  # read so far, including those that could not be used
    id: str | None = None
    pending: list[Row] = field(default_factory=list)  # since the last prediction
    since: int = 1  # number of the first of these
    skipped: int = 0  # rows of this run that could not be used
    sink: Sink = field(init=False)

    def begin(self, out: Output) -> None:
        """Open the output, and resume from a saved state if there is one."""
        if self.path is None or not self.path.exists():
            self.sink = Sink(out, 0)
            self.save()  # so that the same command can resume, whenever it is killed
            return
        from seq2tens.nn.streaming import storage

        state, notes = storage.load(self.path)
        ours = set(notes) == NOTES and isinstance(state, dict) and "pending" in state
        if not ours:
            raise UserError(
                f"`--state` must be a state of `seq2tens stream`, got another file in {self.path}"
            )
        for name in ("format", "every"):
            if notes[name] != getattr(self, name):
                raise UserError(
                    f"`--{name}` must be {notes[name]} as in {self.path}, got {getattr(self, name)}"
                )
        self.stream.restore(state["stream"])
        self.rows, self.id, self.since = notes["rows"], notes["id"], notes["since"]
        self.pending = [Row(self.id, *row) for row in _rows(state["pending"], state["times"])]
        self.sink = Sink(out, notes["written"])

    def save(self) -> None:
        """Save the state of the session, if it has a file."""
        if self.path is None:
            return
        import torch

        from seq2tens.nn.streaming import storage

        self.sink.sync()
        values = torch.tensor([row.values for row in self.pending], dtype=torch.float64)
        times = torch.tensor([row.time for row in self.pending if row.time is not None], dtype=torch.float64)
        notes = {name: getattr(self, name) for name in NOTES - {"written"}} | {"written": self.sink.written}
        with refusing(OSError):
            storage.save(self.path, {"stream": self.stream.state(), "pending": values, "times": times}, notes)

    def take(self, row: Row) -> None:
        """Feed a row, and write a prediction if one is due."""
        if row.id == self.id:
            self._feed(row)
            return
        before = self.stream.state(), self.id, self.pending
        self.stream.reset()
        self.id, self.pending = row.id, []
        try:
            self._feed(row)
        except Refused:  # a row that cannot be used does not begin a sequence
            state, self.id, self.pending = before
            self.stream.restore(state)
            raise

    def _feed(self, row: Row) -> None:
        import numpy as np

        from seq2tens._checks import ArgumentError

        rows = [*self.pending, row]
        since = self.since if self.pending else self.rows + 1
        if len(rows) < self.every:
            self.pending, self.since = rows, since
            return
        times = None if row.time is None else np.array([row.time for row in rows])
        try:
            probabilities = self.stream.push(np.array([row.values for row in rows]), times, last=True)[0]
        except ArgumentError as error:
            raise Refused(str(error) if self.every == 1 else f"{error} (in rows since {since})") from error
        self.pending = []
        self.sink.write(self._prediction(probabilities))

    def header(self, has_id: bool) -> None:
        """Write the names of the columns, once."""
        if self.sink.written == 0:
            names = [f"probability_{name}" for name in self.stream.classes_.tolist()]
            self.sink.write(csv_line(["row", *(["id"] if has_id else []), "prediction", *names]))

    def _prediction(self, probabilities: Any) -> str:
        classes = self.stream.classes_.tolist()
        best, numbers = classes[probabilities.argmax()], probabilities.tolist()
        key = {} if self.id is None else {"id": self.id}
        if self.format == "csv":
            return csv_line([self.rows + 1, *key.values(), best, *numbers])
        named = {str(name): number for name, number in zip(classes, numbers, strict=True)}
        return json.dumps({"row": self.rows + 1, **key, "prediction": best, "probabilities": named}) + "\n"


def _rows(values: Any, times: Any) -> list[tuple[float | None, list[float]]]:
    """Restore pending rows from the tensors that `save` has written."""
    clock = times.tolist() or [None] * len(values)
    return list(zip(clock, values.tolist(), strict=True))
