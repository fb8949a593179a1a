"""The paper's mortality experiment: in-hospital deaths of 12,000 intensive-care patients."""

from seq2tens.experiments.mortality.experiment import (
    EXPERIMENT,
    choose_models,
    finals,
    measure,
    named_settings,
)
from seq2tens.experiments.mortality.recipes import RECIPES
from seq2tens.experiments.mortality.table import MortalityCell, MortalityRow
from seq2tens.experiments.mortality.tuning import choose, composite, search, trials

__all__ = [
    "EXPERIMENT",
    "RECIPES",
    "MortalityCell",
    "MortalityRow",
    "choose",
    "choose_models",
    "composite",
    "finals",
    "measure",
    "named_settings",
    "search",
    "trials",
]
