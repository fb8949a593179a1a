"""The registry of experiments."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seq2tens import _checks as check
from seq2tens.experiments.core.cells import AnyCell
from seq2tens.experiments.core.rows import AnyRow, RowTable

# Each is a package of this name with an `EXPERIMENT`, a function `measure` that turns a cell into a row, and
# a module `report` whose function `section` turns rows into a section of a report.
NAMES = ("tsc", "mortality", "imputation")


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment with its command, its cost and its expected results.

    `datasets` and `models` list all of them, in the order in which they are run. `cell` is the class of its
    cells, and `table` reads and writes its finished cells.
    """

    name: str
    command: str
    datasets: tuple[str, ...]
    models: tuple[str, ...]
    cost: str
    expected: str
    cell: type[AnyCell]
    table: RowTable[Any]


def find(name: str) -> Experiment:
    """Find the experiment with this name."""
    return _module(name).EXPERIMENT


def measure(cell: AnyCell, threads: int, **options: Any) -> AnyRow:
    """Run a cell in this process, with the `measure` of its experiment."""
    return _module(cell.experiment).measure(cell, threads, **options)


def section(name: str, rows: Sequence[AnyRow], **options: Any) -> Any:
    """The section of a report about an experiment; plotting libraries are imported only here."""
    return _module(name, ".report").section(rows, **options)


def _module(name: str, part: str = "") -> Any:
    check.choice("experiment", name, NAMES)
    return importlib.import_module(f"seq2tens.experiments.{name}{part}")
