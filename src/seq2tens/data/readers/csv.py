"""Long tables as `.csv`."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from seq2tens.data.labelled import Labelled
from seq2tens.data.readers._text import ReadError, malformed, number
from seq2tens.data.readers.long import Columns, Table, index_columns

Rows = Iterator[tuple[int, list[str]]]


def read_csv(path: str | Path, columns: Columns | None = None) -> Labelled:
    """Read a long table; an empty cell of a channel, `NaN`, `NA` or `?` is missing, labels are strings.

    The rows of an id may stand in any order: they are sorted by time.
    """
    path = Path(path)
    columns = columns or Columns()
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = _rows(file, path)
        _, names = next(rows, (0, []))
        if not names:
            raise malformed(path, "must begin with a header, got an empty file")
        return _table(rows, [name.strip() for name in names], columns, path).gather(columns)


def _rows(file: Iterator[str], path: Path) -> Rows:
    """Rows that are not blank, with the line on which each ends."""
    reader = csv.reader(file, strict=True)
    try:
        for cells in reader:
            if cells:
                yield reader.line_num, cells
    except csv.Error as error:
        raise malformed(path, str(error), reader.line_num) from error
    except UnicodeDecodeError as error:
        raise malformed(path, f"must be UTF-8 text, {error.reason} at byte {error.start}") from error


def _table(rows: Rows, names: list[str], columns: Columns, path: Path) -> Table:
    index = index_columns(names)
    columns = columns.among(names, path, index)
    channels = columns.channels or ()
    lines, ids, labels, times, values = array("q"), [], [], array("d"), array("d")
    for line, cells in rows:
        if len(cells) != len(names):
            raise malformed(path, f"must have {len(names)} cells like the header, got {len(cells)}", line)
        row = Row(dict(zip(names, cells, strict=True)), path, line)
        lines.append(line)
        ids.append(row.text(columns.id))
        times.append(row.number(columns.time))
        values.extend(row.number_or_missing(name) for name in channels)
        if columns.label is not None:
            labels.append(row.text(columns.label))
    if not ids:
        raise malformed(path, "must have rows after the header, got none")

    def error(row: int, reason: str) -> ReadError:
        return malformed(path, reason, lines[row])

    matrix = np.frombuffer(values).reshape(len(ids), len(channels))
    classes = None if columns.label is None else labels
    return Table(columns, ids, np.frombuffer(times), matrix, classes, error, index)


class Row(NamedTuple):
    """The cells of a row by column, and where it stands."""

    cells: dict[str, str]
    path: Path
    line: int

    def text(self, name: str) -> str:
        """The cell as it is; it must not be empty."""
        cell = self.cells[name].strip()
        if not cell:
            raise malformed(self.path, f"column `{name}` must not be empty", self.line)
        return cell

    def number_or_missing(self, name: str) -> float:
        """The cell as a number, NaN if it is missing."""
        cell = self.cells[name]
        try:
            return number(cell) if cell and not cell.isspace() else np.nan
        except ValueError:
            raise self._not_a_number(name) from None

    def number(self, name: str) -> float:
        """The cell as a number; it must not be missing."""
        value = self.number_or_missing(name)
        if np.isnan(value):
            raise self._not_a_number(name)
        return value

    def _not_a_number(self, name: str) -> ReadError:
        return malformed(self.path, f"column `{name}` must be a number, got {self.cells[name]!r}", self.line)
