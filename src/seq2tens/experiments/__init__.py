"""The paper's experiments: cells, models, runners, and the tables of what they found."""

from seq2tens.experiments.cells import Cell, grid
from seq2tens.experiments.experiment import Experiment
from seq2tens.experiments.models import MODELS, Model
from seq2tens.experiments.ray_runner import run_on_ray
from seq2tens.experiments.runner import Summary, run
from seq2tens.experiments.table import Row, append, read

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
