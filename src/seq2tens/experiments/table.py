"""The results table: a CSV file with a row for every finished cell.

It is read whole, checked, and written whole under a lock: a table with the right name is complete whatever
happens, and several processes may add to it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from filelock import FileLock

from seq2tens._checks import ArgumentError, require
from seq2tens.training.checkpoint import write_atomically


@dataclass(frozen=True, kw_only=True)
class Row:
    """A finished cell.

    `recipe` is `"-"` for a model that is not trained in epochs; `epochs` and `parameters` (those that are
    trained, the last linear layer included) are None where there are none. Seconds do not count what is
    compiled on first use; `peak_mib` is the memory of the process at its height, the libraries included.
    `commit` is that of the source tree, with `"+"` where it was changed, and empty outside of one.
    """

    key: str
    dataset: str
    model: str
    seed: int
    recipe: str
    accuracy: float
    epochs: int | None
    parameters: int | None
    fit_seconds: float
    predict_seconds: float
    peak_mib: float
    threads: int
    n_train: int
    n_test: int
    versions: str
    commit: str
    finished: str

    def __post_init__(self) -> None:
        require(0 <= self.accuracy <= 1, f"`accuracy` must lie in [0, 1], got {self.accuracy}")
        for name in ("fit_seconds", "predict_seconds", "peak_mib"):
            value = getattr(self, name)
            require(0 <= value < float("inf"), f"`{name}` must be finite and at least 0, got {value}")


COLUMNS = tuple(field.name for field in fields(Row))
_KINDS: dict[str, tuple[Callable[[str], Any], str]] = {
    "str": (str, "text"),
    "int": (int, "an integer"),
    "float": (float, "a number"),
    "int | None": (lambda text: int(text) if text else None, "an integer or empty"),
}


def read(path: str | Path) -> list[Row]:
    """All finished cells, in the order in which they were added.

    A table with other columns, cells that cannot be read or a cell that is there twice is an error.
    """
    return _parse(Path(path).read_text(encoding="utf-8"), path)


def append(path: str | Path, row: Row) -> bool:
    """Add a row at the end, unless its cell is there already; True if it was added.

    The file is made if it does not exist.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock")):
        if row.key in finished(path):
            return False
        text = path.read_text(encoding="utf-8") if path.exists() else _line(COLUMNS)
        # An editor may have taken the last line's end away.
        text = text.rstrip("\n") + "\n" + _line(astuple(row))
        write_atomically(path, text.encode(), f".{path.name}.tmp")
    return True


def finished(path: str | Path) -> set[str]:
    """The keys of all finished cells; none where there is no table yet."""
    return {row.key for row in read(path)} if Path(path).exists() else set()


def _line(cells: tuple[Any, ...]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def _parse(text: str, path: str | Path) -> list[Row]:
    lines = _lines(text, path)
    _check_header(next(lines, (1, []))[1], path)
    rows: dict[str, Row] = {}
    for number, cells in lines:
        place = f"{path}, line {number}"
        row = _row(cells, place)
        require(row.key not in rows, f"{place}: the cell {row.key} must be there once, got it again")
        rows[row.key] = row
    return list(rows.values())


def _lines(text: str, path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Each line's number and its cells."""
    reader = csv.reader(io.StringIO(text), strict=True)
    try:
        for cells in reader:
            yield reader.line_num, cells
    except csv.Error as error:
        raise ArgumentError(f"{path}, line {reader.line_num}: {error}") from error


def _check_header(found: list[str], path: str | Path) -> None:
    unknown = [name for name in found if name not in COLUMNS]
    missing = [name for name in COLUMNS if name not in found]
    require(not unknown, f"{path}, line 1: must have known columns only, got also {', '.join(unknown)}")
    require(not missing, f"{path}, line 1: must have all columns, got none for {', '.join(missing)}")
    require(
        tuple(found) == COLUMNS, f"{path}, line 1: must have the columns in the order {', '.join(COLUMNS)}"
    )


def _row(cells: list[str], place: str) -> Row:
    require(
        len(cells) == len(COLUMNS),
        f"{place}: must have {len(COLUMNS)} cells like the header, got {len(cells)}",
    )
    values: dict[str, Any] = {}
    for field, text in zip(fields(Row), cells, strict=True):
        kind, meaning = _KINDS[str(field.type)]
        try:
            values[field.name] = kind(text)
        except ValueError as error:
            raise ArgumentError(f"{place}: column `{field.name}` must be {meaning}, got {text!r}") from error
    try:
        return Row(**values)
    except ArgumentError as error:
        raise ArgumentError(f"{place}: {error}") from error
