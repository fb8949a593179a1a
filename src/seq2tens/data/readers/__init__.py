"""One reader per file format, and `read`, which picks one by the suffix. None of them unpickles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from seq2tens._checks import require
from seq2tens.data.labelled import Labelled, Split
from seq2tens.data.readers._text import ReadError
from seq2tens.data.readers.arff import read_arff
from seq2tens.data.readers.csv import read_csv
from seq2tens.data.readers.long import Columns
from seq2tens.data.readers.mat import read_mat
from seq2tens.data.readers.npz import read_npz
from seq2tens.data.readers.parquet import read_parquet
from seq2tens.data.readers.ts import read_ts

__all__ = [
    "Columns",
    "ReadError",
    "read",
    "read_arff",
    "read_csv",
    "read_mat",
    "read_npz",
    "read_parquet",
    "read_ts",
]

TABLES: dict[str, Callable[[Path, Columns | None], Labelled]] = {".csv": read_csv, ".parquet": read_parquet}
FILES: dict[str, Callable[[Path], Labelled | Split]] = {
    ".ts": read_ts,
    ".arff": read_arff,
    ".mat": read_mat,
    ".npz": read_npz,
}


def read(path: str | Path, columns: Columns | None = None) -> Labelled | Split:
    """Read a file by its suffix; `.mat` and `.npz` hold both halves (`Split`), the others one (`Labelled`).

    `columns` names the columns of a long table (`.csv`, `.parquet`) where they are not the usual ones.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    known = ", ".join([*FILES, *TABLES])
    require(suffix in FILES or suffix in TABLES, f"`path` must end with one of {known}, got {str(path)!r}")
    if suffix in TABLES:
        return TABLES[suffix](path, columns)
    require(columns is None, f"`columns` is for {' and '.join(TABLES)} files only, got it with {str(path)!r}")
    return FILES[suffix](path)
