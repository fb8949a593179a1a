"""Rows of results, which are named tuples, in .csv files that grow."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

R = TypeVar("R", bound=tuple[Any, ...])


def append(rows: Sequence[R], path: Path, digits: str = ".4f") -> None:
    """Append rows; a new file begins with the names of the columns."""
    if not rows:
        return
    new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        if new:
            table.writerow(rows[0]._fields)  # type: ignore[attr-defined]
        table.writerows([format(v, digits) if isinstance(v, float) else v for v in row] for row in rows)


def read(kind: type[R], path: Path) -> list[R]:
    """Read all rows; columns that an earlier version did not have get their defaults."""
    if not path.exists():
        return []
    types = get_type_hints(kind)
    with path.open(newline="") as file:
        return [
            kind(**{name: types[name](text) for name, text in row.items() if text})  # type: ignore[call-arg]
            for row in csv.DictReader(file)
        ]
