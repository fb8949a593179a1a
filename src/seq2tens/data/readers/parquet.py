"""Long tables as `.parquet`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from seq2tens.data._optional import optional
from seq2tens.data.labelled import Labelled
from seq2tens.data.readers._text import ReadError, malformed, naming
from seq2tens.data.readers._zip import check_unpacked
from seq2tens.data.readers.long import Columns, Table, index_columns

# What pyarrow raises for broken bytes beside its own errors.
BROKEN = (ArithmeticError, AttributeError, LookupError, MemoryError, OSError, TypeError, ValueError)


def read_parquet(path: str | Path, columns: Columns | None = None) -> Labelled:
    """Read a long table; a null of a channel is missing, labels keep their type.

    The rows of an id may stand in any order: they are sorted by time. Rows are counted from 0 in errors.
    """
    path = Path(path)
    columns = columns or Columns()
    arrow = optional("pyarrow", "reading .parquet files")
    parquet = optional("pyarrow.parquet", "reading .parquet files")
    # Opened here, so that a missing file is Python's own error and nothing is taken for a URL.
    with path.open("rb") as file:
        try:
            return _read(parquet.ParquetFile(file, page_checksum_verification=True), columns, path)
        except ReadError:
            raise
        except (arrow.ArrowException, *BROKEN) as error:
            raise malformed(path, f"must be a Parquet file: {error}") from error


def _read(file: Any, columns: Columns, path: Path) -> Labelled:
    """Only the columns that are asked for are read."""
    schema = file.schema_arrow
    index = _index(schema)
    present = columns.among(schema.names, path, index)
    if (rows := file.metadata.num_rows) <= 0:
        raise malformed(path, "must have rows, got none")
    check_unpacked(path, 8 * rows * len(present.named()), path.stat().st_size)
    table = file.read(columns=present.named())
    with naming(path):
        return _table(table, present, path, index).gather(columns)


def _table(table: Any, columns: Columns, path: Path, index: tuple[str, ...]) -> Table:
    values = np.column_stack([_numbers(table, name, path) for name in columns.channels or ()])
    labels = None if columns.label is None else _filled(table, columns.label, path)

    def error(row: int, reason: str) -> ReadError:
        return malformed(path, f"row {row}: {reason}")

    times = _numbers(table, columns.time, path)
    missing = np.flatnonzero(np.isnan(times))
    if len(missing):
        raise error(int(missing[0]), f"column `{columns.time}` must be a number, got nothing")
    return Table(columns, _filled(table, columns.id, path), times, values, labels, error, index)


def _index(schema: Any) -> tuple[str, ...]:
    """The columns that are an index by their name, or because pandas noted so in the file."""
    noted = (schema.pandas_metadata or {}).get("index_columns", [])
    named = [name for name in noted if name in schema.names]  # a range is noted, but has no column
    return tuple(dict.fromkeys([*index_columns(schema.names), *named]))


def _numbers(table: Any, name: str, path: Path) -> Float[np.ndarray, " rows"]:
    column = table[name]
    array = column.to_numpy()
    if array.dtype.kind not in "iuf":
        raise malformed(path, f"column `{name}` must hold numbers, got {column.type}")
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _filled(table: Any, name: str, path: Path) -> list[Any]:
    cells = table[name].to_pylist()
    if None in cells:
        raise malformed(path, f"row {cells.index(None)}: column `{name}` must not be empty")
    return cells
