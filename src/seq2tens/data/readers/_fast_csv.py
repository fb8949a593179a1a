"""Fast reading of large `.csv` files with pyarrow or polars."""

from __future__ import annotations

import importlib
import io
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seq2tens.data.readers._dialect import Dialect, open_bytes
from seq2tens.data.readers._text import ReadError, malformed, missing
from seq2tens.data.tables.columns import Columns, index_columns
from seq2tens.data.tables.encoding import Words
from seq2tens.data.tables.frames import table_of
from seq2tens.data.tables.interchange import narwhals

if TYPE_CHECKING:
    from seq2tens.data.tables.long import Table

# Other spellings are left to the slow reader.
MISSING_TEXTS = [
    "", "?", "NA", "na", "N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "Null", "None", "none", "NONE",
]  # fmt: skip
DAY, ZONE = re.compile(r"\d{4}-\d\d-\d\d"), re.compile(r"\d\d:\d\d.*(Z|[+-]\d\d:?\d\d)$")
NUMBER = re.compile(r"[+-]?[\d.,]+([eE][+-]?\d+)?")
# Bytes that pyarrow reads at a time; larger blocks take more memory.
BLOCK_BYTES = 2**20


def read_table(
    path: Path, columns: Columns, names: list[str], dialect: Dialect, sample: Sequence[Sequence[str]]
) -> Table | None:
    """Read the table; None without a library, ValueError for errors that the slow reader has to explain."""
    read = next((reader for module, reader in READERS.items() if _installed(module)), None)
    if read is None:
        return None
    kinds = _kinds(columns, names, sample)
    frame = narwhals().from_native(read(path, columns, names, dialect, kinds), eager_only=True)
    _give_memory_back()
    if columns.time is not None and not _is_time(frame[columns.time].dtype):
        raise ValueError(columns.time)  # the slow reader would not accept it as a time

    def error(row: int, reason: str) -> ReadError:
        return malformed(path, reason)

    table = table_of(frame, columns, index_columns(names), error)
    del frame
    _give_memory_back()
    for column in (*table.channels, *table.static):
        if not isinstance(column, Words) and np.isinf(column).any():
            raise ValueError(path)
    return _cleaned(table)


def _give_memory_back() -> None:
    """Release memory that pyarrow has freed but keeps for later use."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()


def _installed(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def _is_time(dtype: Any) -> bool:
    nw = narwhals()
    return bool(dtype.is_numeric() or dtype == nw.Datetime or dtype == nw.Date)


def _kind_of_time(cells: Sequence[str]) -> str | None:
    """Return `number`, `date` or `moment` (with a time zone); None to leave the type to the library."""
    if all(ZONE.search(cell) for cell in cells):
        return "moment"
    if all(DAY.match(cell) and not ZONE.search(cell) for cell in cells):
        return "date"
    # longer integers are not exact as doubles
    return "number" if all(NUMBER.fullmatch(cell) and len(cell) < 16 for cell in cells) else None


def _kinds(columns: Columns, names: list[str], sample: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return `text`, `bool` or `number` for each column, and the kind of times if the sample shows it."""
    encoded = () if columns.encoding is None else (*columns.encoding.columns, *columns.encoding.static)
    words = {columns.id, columns.label, *columns.categories}
    words |= {column.name for column in encoded if column.categories is not None}
    kinds = {name: "text" if name in words else "number" for name in columns.named() if name != columns.time}
    for name in [name for name, kind in kinds.items() if kind == "number"]:
        place = names.index(name)
        cells = {row[place].strip().lower() for row in sample if len(row) == len(names)}
        if {"true", "false"} & cells and all(cell in ("true", "false") or missing(cell) for cell in cells):
            kinds[name] = "bool"
    if columns.time is not None and sample:
        place = names.index(columns.time)
        kind = _kind_of_time([row[place].strip() for row in sample if len(row) == len(names)])
        kinds |= {} if kind is None else {columns.time: kind}
    return kinds


def _with_pyarrow(
    path: Path, columns: Columns, names: list[str], dialect: Dialect, kinds: dict[str, str]
) -> Any:
    arrow, csv = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.csv")
    types = {
        "text": arrow.string(),
        "bool": arrow.bool_(),
        "number": arrow.float64(),
        "date": arrow.timestamp("ns"),
        "moment": arrow.timestamp("ns", "UTC"),
    }
    # Pass an open file, so that a name is not mistaken for a URL.
    with open_bytes(path) as file:
        return csv.read_csv(
            file,
            csv.ReadOptions(column_names=names, skip_rows=1, block_size=BLOCK_BYTES),
            csv.ParseOptions(delimiter=dialect.separator),
            csv.ConvertOptions(
                column_types={name: types[kind] for name, kind in kinds.items()},
                null_values=MISSING_TEXTS,
                decimal_point=dialect.decimal,
                include_columns=columns.named(),
            ),
        )


def _with_polars(
    path: Path, columns: Columns, names: list[str], dialect: Dialect, kinds: dict[str, str]
) -> Any:
    polars = importlib.import_module("polars")
    types = {"text": polars.String, "bool": polars.Boolean, "number": polars.Float64}
    source: Any = path
    if path.suffix.lower() == ".gz":
        with open_bytes(path) as file:
            source = io.BytesIO(file.read())  # an error while polars reads would be a panic
    try:
        frame = polars.read_csv(
            source,
            has_header=False,
            skip_rows=1,
            new_columns=names,
            columns=[names.index(name) for name in columns.named()],
            separator=dialect.separator,
            decimal_comma=dialect.decimal == ",",
            null_values=MISSING_TEXTS,
            schema_overrides={name: types[kind] for name, kind in kinds.items() if kind in types},
            try_parse_dates=True,
        )
    except polars.exceptions.PolarsError as error:
        raise ValueError(path) from error
    return frame.select(columns.named())


READERS = {"pyarrow": _with_pyarrow, "polars": _with_polars}


def _cleaned(table: Table) -> Table:
    """Normalise strings as the slow reader does: without surrounding whitespace, and with missing values."""
    channels, static = (
        [_words(column) if isinstance(column, Words) else column for column in part]
        for part in (table.channels, table.static)
    )
    ids, labels = (None if words is None else _words(words, ("",)) for words in (table.ids, table.labels))
    return replace(table, ids=ids, labels=labels, channels=channels, static=static)


def _words(words: Words, empty: Sequence[str] | None = None) -> Words:
    texts = words.as_text()
    known = [key for key in texts.keys if not (missing(key) if empty is None else key in empty)]
    numbers = {key: code for code, key in enumerate(known)}
    codes = np.array([*(numbers.get(key, -1) for key in texts.keys), -1])
    return Words(codes[texts.codes], known)
