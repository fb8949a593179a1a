"""Separator and decimal mark of a `.csv` file."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

from seq2tens._checks import choice, require
from seq2tens.data.readers._zip import check_unpacked

SEPARATORS = (",", ";", "\t", "|")
# Number of lines that a guess is based on.
SAMPLE = 200
COMMA, POINT = (re.compile(rf"\s*[+-]?\d*{mark}\d+([eE][+-]?\d+)?\s*") for mark in (",", r"\."))


@dataclass(frozen=True)
class Dialect:
    """Separator of cells, and decimal mark."""

    separator: str
    decimal: str
    guessed: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """A note if the guess is unusual."""
        if not self.guessed or self.separator == ",":
            return ()
        decimals = "commas" if self.decimal == "," else "points"
        return (f"cells are separated by {self.separator!r}, and decimals written with {decimals}",)


class Unpacked(io.RawIOBase):
    """The content of a `.gz` file; an implausibly large one raises an error."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.size, self.total = path, path.stat().st_size, 0
        self.archive = gzip.GzipFile(path, "rb")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self.archive.readinto(buffer)
        self.total += count
        check_unpacked(self.path, self.total, self.size)
        return count

    def close(self) -> None:
        self.archive.close()
        super().close()


def open_bytes(path: Path) -> IO[bytes]:
    """Open the file, decompressed if its name ends with `.gz`."""
    return io.BufferedReader(Unpacked(path), 2**20) if path.suffix.lower() == ".gz" else path.open("rb")


def open_text(path: Path, errors: str = "strict") -> IO[str]:
    """Open the file as text."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", newline="", errors=errors)


def dialect_of(path: Path, separator: str | None, decimal: str | None) -> tuple[Dialect, list[list[str]]]:
    """Return the dialect, guessed from the first lines where not given, and the cells of these lines."""
    require(
        separator is None or len(separator) == 1,
        f"`separator` must be one character, such as ',', ';' or '\\t', got {separator!r}",
    )
    choice("decimal", decimal, (None, ".", ","))
    with open_text(path, errors="replace") as file:
        lines = [line for line in islice(_lines(file), SAMPLE) if line.strip()]
    guess = separator or max(SEPARATORS, key=lambda mark: len(_cells(lines[:1], mark)[0]) if lines else 0)
    rows = _cells(lines, guess)
    mark = decimal or _decimal(guess, rows[1:])
    require(mark != guess, f"`decimal` must differ from `separator`, got {mark!r} for both")
    return Dialect(guess, mark, guessed=separator is None or decimal is None), rows


def _lines(file: IO[str]) -> Iterator[str]:
    """Yield lines up to an error: the reader will report a broken archive."""
    try:
        yield from file
    except (OSError, EOFError, ValueError, zlib.error):
        return


def _cells(lines: Sequence[str], separator: str) -> list[list[str]]:
    try:
        return [cells for cells in csv.reader(lines, delimiter=separator) if cells] or [[]]
    except csv.Error:
        return [[]]


def _decimal(separator: str, rows: Sequence[Sequence[str]]) -> str:
    if separator == ",":
        return "."
    cells = [cell for row in rows for cell in row]
    commas, points = (any(mark.fullmatch(cell) for cell in cells) for mark in (COMMA, POINT))
    return "," if commas and not points else "."
