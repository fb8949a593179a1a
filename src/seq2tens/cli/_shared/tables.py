"""Write tables of results as CSV, Parquet or JSON lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from seq2tens.cli import _files
from seq2tens.cli._shell import UserError, refusing

if TYPE_CHECKING:  # importing it takes seconds
    import numpy as np

    Table = dict[str, np.ndarray]

# The number of rows that are converted to text at a time.
ROWS = 10_000


def table_format(path: Path, requested: str | None) -> str:
    """The format of a table: the requested one, else that of the suffix, else CSV."""
    suffix = path.suffix.lower().removeprefix(".")
    named = suffix if suffix in WRITERS else None
    if requested is not None and named is not None and requested != named:
        raise UserError(f"`--format` must be {named} for a file of this name, got {requested} with {path}")
    return requested or named or "csv"


def write(table: Table, result: _files.Output, form: str | None = None) -> None:
    """Write the columns, by default in the format of the suffix, or as CSV if the suffix is unknown."""
    with result.replacing() as file:
        WRITERS[form or table_format(result.path, None)](table, file)
    result.print_path()


def _rows(table: Table) -> Iterator[tuple[Any, ...]]:
    rows = len(next(iter(table.values())))
    for start in range(0, rows, ROWS):
        yield from zip(*(column[start : start + ROWS].tolist() for column in table.values()), strict=True)


def _write_csv(table: Table, file: BinaryIO) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(_rows(table))
    text.detach()  # flushes, and leaves the file open


def _write_json_lines(table: Table, file: BinaryIO) -> None:
    for row in _rows(table):
        line = json.dumps(dict(zip(table, row, strict=True)), ensure_ascii=False)
        file.write(f"{line}\n".encode())


def _write_parquet(table: Table, file: BinaryIO) -> None:
    from seq2tens.data import import_optional

    with refusing(ImportError):
        arrow = import_optional("pyarrow", "writing .parquet files")
        parquet = import_optional("pyarrow.parquet", "writing .parquet files")
    parquet.write_table(arrow.table({name: column.tolist() for name, column in table.items()}), file)


WRITERS: dict[str, Callable[[Table, BinaryIO], None]] = {
    "csv": _write_csv,
    "parquet": _write_parquet,
    "jsonl": _write_json_lines,
}
