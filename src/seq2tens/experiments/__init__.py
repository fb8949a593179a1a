"""The paper's experiments: cells, models, runners, and the tables of what they found."""

from seq2tens.experiments.core import Experiment, Summary, run, run_on_ray
from seq2tens.experiments.tsc import MODELS, Cell, Model, Row, append, grid, read

__all__ = [
    "MODELS",
    "Cell",
    "Experiment",
    "Model",
    "Row",
    "Summary",
    "append",
    "grid",
    "read",
    "run",
    "run_on_ray",
]
