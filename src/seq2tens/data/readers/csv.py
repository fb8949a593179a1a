"""Long tables as `.csv` files.

Large files are read by pyarrow or polars if one is installed. Small files, and files that these libraries
reject, are read here line by line, so that an error can name its line.
"""

from __future__ import annotations

import csv
import re
import zlib
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from seq2tens.data.labelled import Labelled
from seq2tens.data.readers import _fast_csv
from seq2tens.data.readers._dialect import Dialect, dialect_of, open_text
from seq2tens.data.readers._text import ReadError, malformed, missing, parse_number
from seq2tens.data.tables.clock import parse_date
from seq2tens.data.tables.columns import Columns, index_columns
from seq2tens.data.tables.encoding import Column, Words
from seq2tens.data.tables.long import Table

NumberedRows = Iterator[tuple[int, list[str]]]
BOOLEANS = {"true": 1.0, "false": 0.0}
INTEGER = re.compile(r"\s*[+-]?\d+\s*")
# Size in bytes from which another library is tried first.
LARGE_BYTES = 2**20


def read_csv(
    path: str | Path,
    columns: Columns | None = None,
    *,
    separator: str | None = None,
    decimal: str | None = None,
) -> Labelled:
    """Read a long table, `.csv` or `.csv.gz`; labels are strings.

    An empty cell of a channel, `NaN`, `NA`, `N/A`, `null`, `None` or `?` is missing; `true` and `false` are 1
    and 0. Times are numbers or dates of ISO 8601. The rows of an id may be in any order: they are sorted by
    time.

    Args:
        path: the file.
        columns: roles of the columns, if they do not have the standard names.
        separator: separator of cells; by default `,`, `;`, `|` or tab, guessed from the header.
        decimal: decimal mark, `"."` or `","`; by default guessed from the first numbers. `notes` of the
            result mention an unusual guess.
    """
    path, columns = Path(path), columns or Columns()
    dialect, sample = dialect_of(path, separator, decimal)
    names = [name.strip() for name in sample[0]]
    labelled = _read_fast(path, columns, dialect, sample) if path.stat().st_size >= LARGE_BYTES else None
    if labelled is None:
        with open_text(path) as file:
            labelled = _read_lines(_rows(file, path, dialect), columns, dialect, path)
    return replace(labelled, notes=(*dialect.notes, *_notes(columns, names)))


def _notes(columns: Columns, names: list[str]) -> tuple[str, ...]:
    if columns.time != "time" or "time" in [name.lower() for name in names]:
        return ()
    return ("there is no column `time`, so the steps are in the order of the rows",)


def _read_fast(path: Path, columns: Columns, dialect: Dialect, sample: list[list[str]]) -> Labelled | None:
    """Read with a library; None if there is none, or if only the slow reader can explain an error."""
    names = [name.strip() for name in sample[0]]
    try:
        present = columns.resolve(names, lambda reason: malformed(path, reason), index_columns(names))
        table = _fast_csv.read_table(path, present, names, dialect, sample[1:])
        return None if table is None else table.gather(columns)
    except (ValueError, OSError, EOFError, zlib.error):
        return None


def _read_lines(rows: NumberedRows, columns: Columns, dialect: Dialect, path: Path) -> Labelled:
    _, names = next(rows, (0, []))
    if not names:
        raise malformed(path, "must begin with a header, got an empty file")
    return _table(rows, [name.strip() for name in names], columns, dialect, path).gather(columns)


def _rows(file: Iterator[str], path: Path, dialect: Dialect) -> NumberedRows:
    """Yield rows that are not blank, with the line on which each ends."""
    reader = csv.reader(file, delimiter=dialect.separator, strict=True)
    try:
        for cells in reader:
            if cells:
                yield reader.line_num, cells
    except csv.Error as error:
        raise malformed(path, str(error), reader.line_num) from error
    except UnicodeDecodeError as error:
        raise malformed(path, f"must be UTF-8 text, {error.reason} at byte {error.start}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise malformed(path, f"must be a complete gzip file: {error}") from error


def _table(rows: NumberedRows, names: list[str], columns: Columns, dialect: Dialect, path: Path) -> Table:
    index = index_columns(names)
    present = columns.resolve(names, lambda reason: malformed(path, reason), index)
    lines = array("q")
    builders = _builders(present, dialect, path)
    cells_of = [(names.index(name), builder) for name, builder in builders]
    for line, cells in rows:
        if len(cells) != len(names):
            raise malformed(path, f"must have {len(names)} cells like the header, got {len(cells)}", line)
        lines.append(line)
        for place, builder in cells_of:
            builder.add(cells[place], line)
    if not lines:
        raise malformed(path, "must have rows after the header, got none")

    def error(row: int, reason: str) -> ReadError:
        return malformed(path, reason, lines[row])

    built: dict[str, Any] = {name: builder.column(error) for name, builder in builders}
    channels, static = ([built[name] for name in part] for part in (present.channels or (), present.static))
    id, time, label = (built.get(name or "") for name in (present.id, present.time, present.label))
    return Table(present, id, time, channels, static, label, error, index)


def _builders(columns: Columns, dialect: Dialect, path: Path) -> list[tuple[str, Builder]]:
    """Return a builder for each column."""
    words = {name for name in (columns.id, columns.label) if name is not None}
    encoded = () if columns.encoding is None else (*columns.encoding.columns, *columns.encoding.static)
    categories = {*columns.categories, *(column.name for column in encoded if column.categories is not None)}
    builders: list[tuple[str, Builder]] = []
    for name in columns.named():
        place = Place(name, path, dialect.decimal)
        if name in words:
            builders.append((name, WordBuilder(place, required=True)))
        elif name == columns.time:
            builders.append((name, TimeBuilder(place)))
        elif name in categories:
            builders.append((name, WordBuilder(place, required=False)))
        else:
            builders.append((name, NumberBuilder(place)))
    return builders


@dataclass(frozen=True)
class Place:
    """A column of a file, and the decimal mark of its numbers."""

    name: str
    path: Path
    decimal: str

    def number(self, cell: str) -> float:
        """Parse the number in a cell; ValueError if there is none."""
        if self.decimal == ".":
            return parse_number(cell)
        if "." in cell:
            raise ValueError(cell)
        return parse_number(cell.replace(",", "."))

    def refuse(self, rule: str, cell: str, line: int) -> ReadError:
        """Return the error to raise for a cell."""
        return malformed(self.path, f"column `{self.name}` must be {rule}, got {cell!r}", line)


class Builder:
    """Base class of builders, which collect the cells of a column."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def add(self, cell: str, line: int) -> None:
        """Add the cell of the next row."""
        raise NotImplementedError

    def column(self, error: Callable[[int, str], ReadError]) -> Column:
        """Return the column of all cells."""
        raise NotImplementedError


class NumberBuilder(Builder):
    """Builds a column of numbers, NaN where missing."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.values = array("d")

    def add(self, cell: str, line: int) -> None:
        try:
            self.values.append(np.nan if not cell or cell.isspace() else self.place.number(cell))
        except ValueError:
            truth = BOOLEANS.get(cell.strip().lower())
            if truth is None:
                # a cell without digits is hardly a mistyped number
                words = not any(letter.isdigit() for letter in cell) and "inf" not in cell.lower()
                hint = " (`categories` names columns of strings)" if words else ""
                raise self.place.refuse(f"a number{hint}", cell, line) from None
            self.values.append(truth)

    def column(self, error: Callable[[int, str], ReadError]) -> Column:
        return np.frombuffer(self.values)


class WordBuilder(Builder):
    """Builds a column of strings, which must not be empty if they are required."""

    def __init__(self, place: Place, required: bool) -> None:
        super().__init__(place)
        self.required = required
        self.words: list[str | None] = []

    def add(self, cell: str, line: int) -> None:
        word = cell.strip()
        if self.required and not word:
            raise malformed(self.place.path, f"column `{self.place.name}` must not be empty", line)
        self.words.append(None if not self.required and missing(word) else word)

    def column(self, error: Callable[[int, str], ReadError]) -> Column:
        return Words.of_runs(self.words, np.ones(len(self.words), dtype=np.int64))


class TimeBuilder(Builder):
    """Builds a column of times: integers, floats or dates."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.times: list[float | np.datetime64] = []

    def add(self, cell: str, line: int) -> None:
        try:
            time = self._time(cell)
        except ValueError:
            time = np.nan
        if time != time:
            raise self.place.refuse("a number or a date such as 2024-05-01 13:30:00", cell, line)
        self.times.append(time)

    def _time(self, cell: str) -> float | np.datetime64:
        if INTEGER.fullmatch(cell):
            return int(cell)
        try:
            return self.place.number(cell)
        except ValueError:
            return parse_date(cell)

    def column(self, error: Callable[[int, str], ReadError]) -> Column:
        dates = [isinstance(time, np.datetime64) for time in self.times]
        if len(set(dates)) > 1:
            row = dates.index(not dates[0])
            kinds = ("a number", "a date") if dates[0] else ("a date", "a number")
            raise error(row, f"column `{self.place.name}` must not hold {kinds[0]} after {kinds[1]}")
        return np.array(self.times, dtype="M8[ns]" if dates[0] else None)
