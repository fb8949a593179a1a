"""One reader per file format, and `read`, which selects one by the suffix. None of them unpickles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from seq2tens._checks import require
from seq2tens.data.labelled import Labelled, Split
from seq2tens.data.readers._text import ReadError
from seq2tens.data.readers._text import parse_number as parse_number
from seq2tens.data.readers.arff import read_arff
from seq2tens.data.readers.csv import read_csv
from seq2tens.data.readers.folder import read_folder
from seq2tens.data.readers.mat import read_mat
from seq2tens.data.readers.npz import read_npz
from seq2tens.data.readers.parquet import read_parquet
from seq2tens.data.readers.ts import read_ts
from seq2tens.data.tables import Columns

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

TABLES: dict[str, Callable[..., Labelled]] = {".csv": read_csv, ".csv.gz": read_csv, ".parquet": read_parquet}
FILES: dict[str, Callable[[Path], Labelled | Split]] = {
    ".ts": read_ts,
    ".arff": read_arff,
    ".mat": read_mat,
    ".npz": read_npz,
}
HINTS = {
    ".xlsx": "; save the sheet as .csv, or pass `pandas.read_excel(…)` to `Sequences.from_frame`",
    ".xls": "; save the sheet as .csv, or pass `pandas.read_excel(…)` to `Sequences.from_frame`",
}


def read(
    path: str | Path,
    columns: Columns | None = None,
    *,
    separator: str | None = None,
    decimal: str | None = None,
) -> Labelled | Split:
    """Read a file according to its suffix.

    `.mat` and `.npz` files hold a training and a test set (`Split`), the others one set (`Labelled`).

    In a folder of tables each file is one sequence; the names of subfolders, if any, are the labels.

    Args:
        path: a file or folder.
        columns: names of the columns of a long table (`.csv`, `.csv.gz`, `.parquet`), if they differ from the
            defaults.
        separator: separator of the cells of a `.csv` file (default: guessed).
        decimal: decimal mark of a `.csv` file, `"."` or `","` (default: guessed).
    """
    path = Path(path)
    written = {"separator": separator, "decimal": decimal}
    dialect = {name: value for name, value in written.items() if value is not None}
    if path.is_dir():
        return read_folder(
            path, columns or Columns(), tables_in(path), lambda file, of: _table(file, of, dialect)
        )
    suffix = suffix_of(path)
    known = ", ".join([*FILES, *TABLES])
    require(
        suffix in FILES or suffix in TABLES,
        f"`path` must end with one of {known}, got {str(path)!r}{HINTS.get(suffix, '')}",
    )
    if suffix in TABLES:
        return _table(path, columns, dialect)
    unused = "columns" if columns else next(iter(dialect), None)
    require(unused is None, f"`{unused}` is for {', '.join(TABLES)} files only, got it with {str(path)!r}")
    return FILES[suffix](path)


def suffix_of(path: Path) -> str:
    """Return the suffix in lower case; for a compressed file, with the suffix before `.gz`."""
    return "".join(path.suffixes[-2:]).lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


def tables_in(folder: Path) -> list[Path]:
    """Return the tables in a folder and its subfolders, in the order of their names."""
    files = [*folder.glob("*"), *folder.glob("*/*")]
    return sorted(path for path in files if path.is_file() and suffix_of(path) in TABLES)


def _table(path: Path, columns: Columns | None, dialect: dict[str, str]) -> Labelled:
    suffix = suffix_of(path)
    require(
        not dialect or suffix != ".parquet",
        f"`{next(iter(dialect), '')}` is for .csv files only, got it with {str(path)!r}",
    )
    return TABLES[suffix](path, columns, **dialect)
