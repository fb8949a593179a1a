"""What an experiment is, as data."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from seq2tens import _checks as check
from seq2tens.experiments.cells import AnyCell
from seq2tens.experiments.rows import RowTable

# Each is a module of this name, with an `EXPERIMENT` and a function `measure` that turns a cell into a row.
NAMES = ("tsc", "mortality", "imputation")


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment with its command, its cost and what to expect of it.

    `datasets` and `models` are all that there are, in the order in which they are run. `cell` is what its
    cells are, and `table` how they are kept when they are finished.
    """

    name: str
    command: str
    datasets: tuple[str, ...]
    models: tuple[str, ...]
    cost: str
    expected: str
    cell: type[AnyCell]
    table: RowTable[Any]


def module(name: str) -> Any:
    """The module of an experiment."""
    check.choice("experiment", name, NAMES)
    return importlib.import_module(f"seq2tens.experiments.{name}")


def find(name: str) -> Experiment:
    """The experiment of this name."""
    return module(name).EXPERIMENT
