"""The paper's experiments: cells, models, runners and tables of results."""

from seq2tens._moved import moved_module
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

for _old, _new in {
    "imputation_table": "imputation.table",
    "mortality_search": "mortality.tuning",
    "mortality_table": "mortality.table",
    "statistics": "report.statistics",
}.items():
    moved_module(f"{__name__}.{_old}", f"{__name__}.{_new}")
