"""The paper's classification experiment: sixteen data sets, every model of its table, and two more."""

from seq2tens.experiments.tsc.experiment import EXPERIMENT, choose_datasets, choose_models, measure
from seq2tens.experiments.tsc.models import MODELS, Model
from seq2tens.experiments.tsc.table import Cell, Row, append, grid, read

__all__ = [
    "EXPERIMENT",
    "MODELS",
    "Cell",
    "Model",
    "Row",
    "append",
    "choose_datasets",
    "choose_models",
    "grid",
    "measure",
    "read",
]
