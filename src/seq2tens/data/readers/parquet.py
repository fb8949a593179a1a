"""Long tables as `.parquet` files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seq2tens.data._optional import import_optional
from seq2tens.data.labelled import Labelled
from seq2tens.data.readers._text import ReadError, malformed, naming
from seq2tens.data.readers._zip import check_unpacked
from seq2tens.data.tables.columns import Columns, index_columns
from seq2tens.data.tables.frames import table_of
from seq2tens.data.tables.interchange import narwhals

# Errors that pyarrow raises for broken bytes besides its own.
BROKEN = (ArithmeticError, AttributeError, LookupError, MemoryError, OSError, TypeError, ValueError)


def read_parquet(path: str | Path, columns: Columns | None = None) -> Labelled:
    """Read a long table; nulls are missing, labels keep their type, and strings are categories.

    The rows of an id may be in any order: they are sorted by time. Errors count rows from 0.
    """
    path = Path(path)
    columns = columns or Columns()
    arrow = import_optional("pyarrow", "reading .parquet files")
    parquet = import_optional("pyarrow.parquet", "reading .parquet files")
    # Opened here, so that a missing file raises Python's own error and a name is not mistaken for a URL.
    with path.open("rb") as file:
        try:
            return _read(parquet.ParquetFile(file, page_checksum_verification=True), columns, path)
        except ReadError:
            raise
        except (arrow.ArrowException, *BROKEN) as error:
            raise malformed(path, f"must be a Parquet file: {error}") from error


def _read(file: Any, columns: Columns, path: Path) -> Labelled:
    """Read only the requested columns."""
    schema = file.schema_arrow
    index = _index(schema)
    present = columns.resolve(schema.names, lambda reason: malformed(path, reason), index)
    if (rows := file.metadata.num_rows) <= 0:
        raise malformed(path, "must have rows, got none")
    check_unpacked(path, 8 * rows * len(present.named()), path.stat().st_size)
    table = narwhals().from_native(file.read(columns=present.named()), eager_only=True)

    def error(row: int, reason: str) -> ReadError:
        return malformed(path, f"row {row}: {reason}")

    with naming(path):
        return table_of(table, present, index, error).gather(columns)


def _index(schema: Any) -> tuple[str, ...]:
    """Return the index columns, according to their names or to the metadata of pandas in the file."""
    listed = (schema.pandas_metadata or {}).get("index_columns", [])
    named = [name for name in listed if name in schema.names]  # a range is listed, but has no column
    return tuple(dict.fromkeys([*index_columns(schema.names), *named]))
