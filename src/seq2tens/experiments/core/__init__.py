"""The core of all experiments: cells, rows, and runners that turn cells into rows."""

from seq2tens.experiments.core.cells import AnyCell
from seq2tens.experiments.core.ray import run_on_ray
from seq2tens.experiments.core.registry import Experiment, find
from seq2tens.experiments.core.rows import AnyRow, RowTable
from seq2tens.experiments.core.runner import Summary, run

__all__ = ["AnyCell", "AnyRow", "Experiment", "RowTable", "Summary", "find", "run", "run_on_ray"]
