"""Results tables: CSV files with a row for every finished cell.

A table is read, checked and rewritten as a whole under a lock, and replaced atomically. So it is always
complete, and several processes may add rows to it.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, astuple, fields
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from filelock import FileLock

from seq2tens._checks import ArgumentError, require
from seq2tens._moved import warn_moved
from seq2tens._storage import write_atomically


class AnyRow:
    """A finished cell of an experiment: a dataclass whose fields are the columns of its table.

    All tables have the columns below: the key of the cell, the peak memory of the process, including
    libraries, its number of threads, the versions of installed packages, the commit of the source tree, with
    `"+"` if it was changed and empty if there is no tree, and the time when the cell finished, in ISO 8601.
    """

    key: str
    peak_mib: float
    threads: int
    versions: str
    commit: str
    finished: str
    # Columns with numbers in [0, 1], and columns with non-negative numbers such as seconds.
    SHARES: ClassVar[tuple[str, ...]] = ()
    AMOUNTS: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        types = {field.name: str(field.type) for field in fields(self)}  # type: ignore[arg-type]
        for name in self.SHARES:
            value = getattr(self, name)
            rule = "[0, 1] or be empty" if "None" in types[name] else "[0, 1]"
            require(value is None or 0 <= value <= 1, f"`{name}` must lie in {rule}, got {value}")
        for name in (*self.AMOUNTS, "peak_mib"):
            value = getattr(self, name)
            require(0 <= value < float("inf"), f"`{name}` must be finite and at least 0, got {value}")

    @property
    def headline(self) -> str:
        """The main result, in a few words."""
        raise NotImplementedError

    @property
    def told(self) -> str:
        """The old name of `headline`, kept for one release."""
        warn_moved("told", "headline")
        return self.headline


R = TypeVar("R", bound=AnyRow)
_COLUMN_TYPES: dict[str, tuple[Callable[[str], Any], str]] = {
    "str": (str, "text"),
    "int": (int, "an integer"),
    "float": (float, "a number"),
    "int | None": (lambda text: int(text) if text else None, "an integer or empty"),
    "float | None": (lambda text: float(text) if text else None, "a number or empty"),
}


class RowTable(Generic[R]):
    """Reads and writes tables with rows of one kind.

    Columns with a default were added later, at the end: a table without them can still be read, and gets them
    when a row is added to it.
    """

    def __init__(self, row: type[R]) -> None:
        self.row = row
        self.types = {field.name: str(field.type) for field in fields(row)}  # type: ignore[arg-type]
        self.columns = tuple(self.types)
        defaults = {field.name: field.default for field in fields(row)}  # type: ignore[arg-type]
        self.needed = [name for name, default in defaults.items() if default is MISSING]

    def read(self, path: str | Path) -> list[R]:
        """All finished cells, in the order in which they were added.

        Unknown columns, invalid entries and duplicate cells are errors. In a table that was written before a
        column existed, rows have that column's default.
        """
        lines = csv_lines(path)
        header = next(lines, (1, []))[1]
        self._check_header(header, path)
        rows: dict[str, R] = {}
        for number, cells in lines:
            place = f"{path}, line {number}"
            row = self._row(header, cells, place)
            require(row.key not in rows, f"{place}: the cell {row.key} must occur once, got it again")
            rows[row.key] = row
        return list(rows.values())

    def append(self, path: str | Path, row: R) -> bool:
        """Add a row at the end, unless the table has its cell already; return whether it was added.

        The file is created if it does not exist, and gets the columns that it does not have yet.
        """
        path = Path(os.path.realpath(path))  # all links to a file share its lock
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(f".{path.name}.lock")):
            rows = self.read(path) if path.exists() else []
            if any(other.key == row.key for other in rows):
                return False
            lines = map(astuple, [*rows, row])  # type: ignore[arg-type]
            write_atomically(path, csv_text([self.columns, *lines]).encode())
        return True

    def finished(self, path: str | Path) -> set[str]:
        """The keys of all finished cells; empty if the table does not exist yet."""
        return {row.key for row in self.read(path)} if Path(path).exists() else set()

    def _check_header(self, header: list[str], path: str | Path) -> None:
        unknown = [name for name in header if name not in self.columns]
        missing = [name for name in self.needed if name not in header]
        require(not unknown, f"{path}, line 1: must have known columns only, got also {', '.join(unknown)}")
        require(not missing, f"{path}, line 1: must have all columns, got none for {', '.join(missing)}")
        require(
            header == [name for name in self.columns if name in header],
            f"{path}, line 1: must have the columns in the order {', '.join(self.columns)}",
        )

    def _row(self, header: list[str], cells: list[str], place: str) -> R:
        require(
            len(cells) == len(header),
            f"{place}: must have {len(header)} cells like the header, got {len(cells)}",
        )
        values: dict[str, Any] = {}
        for name, text in zip(header, cells, strict=True):
            parse, meaning = _COLUMN_TYPES[self.types[name]]
            try:
                values[name] = parse(text)
            except ValueError as error:
                raise ArgumentError(f"{place}: column `{name}` must be {meaning}, got {text!r}") from error
        try:
            return self.row(**values)
        except ArgumentError as error:
            raise ArgumentError(f"{place}: {error}") from error


def csv_text(lines: Iterable[Iterable[object]]) -> str:
    """Format lines of cells as CSV text."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{path}, byte {error.start}: must be UTF-8 text, got {error.reason}") from error


def csv_lines(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line of a file."""
    reader = csv.reader(io.StringIO(_text(path)), strict=True)
    try:
        for cells in reader:
            yield reader.line_num, cells
    except csv.Error as error:
        raise ArgumentError(f"{path}, line {reader.line_num}: {error}") from error
