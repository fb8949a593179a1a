"""Files of a cell besides its row: small files in folders next to the table, named after its key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from seq2tens._checks import ArgumentError, require
from seq2tens._storage import write_atomically
from seq2tens.experiments.core.rows import csv_lines, csv_text

CURVE = ("epoch", "train_loss", "validation_nll", "validation_mse", "seconds")
CALIBRATION = ("predicted", "found", "entries")
_FOLDER, _PICTURES = Path("curves", "imputation"), Path("figures", "imputation")


class CellFiles(NamedTuple):
    """The paths of a cell's files."""

    curve: Path
    calibration: Path
    picture: Path


def cell_files(folder: Path, key: str) -> CellFiles:
    """The paths of a cell's files for a table in this folder."""
    return CellFiles(
        folder / _FOLDER / f"{key}.csv",
        folder / _FOLDER / f"{key}-calibration.csv",
        folder / _PICTURES / f"{key}.png",
    )


def write_curve(path: Path, history: Sequence[Mapping[str, float]], error: str) -> None:
    """Write one line per epoch; `error` is the column of the history with the validation error."""
    rows = [{**row, "validation_mse": row.get(error, "")} for row in history]
    _write(path, CURVE, [[row.get(name, "") for name in CURVE] for row in rows])


def write_calibration(path: Path, levels: Sequence[tuple[float, float, int]]) -> None:
    """Write one line per level."""
    _write(path, CALIBRATION, levels)


def read(path: Path) -> dict[str, list[float]]:
    """Read the columns of a curve, without those that have empty cells; empty if there is no file."""
    if not path.exists():
        return {}
    lines = csv_lines(path)
    _, names = next(lines, (1, []))
    rows = [_numbers(cells, len(names), f"{path}, line {number}") for number, cells in lines]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)} if rows else {}
    return {
        name: [n for n in column if n is not None] for name, column in columns.items() if None not in column
    }


def _numbers(cells: list[str], expected: int, place: str) -> list[float | None]:
    """The numbers of a line, None for empty cells."""
    require(len(cells) == expected, f"{place}: must have {expected} cells like the header, got {len(cells)}")
    try:
        return [float(cell) if cell else None for cell in cells]
    except ValueError as error:
        raise ArgumentError(f"{place}: must have numbers or empty cells, {error}") from error


def _write(path: Path, header: Sequence[str], lines: Sequence[Sequence[object]]) -> None:
    write_bytes(path, csv_text([header, *lines]).encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)
