"""The paper's imputation experiment: rotating digits, characters of a game and stays in intensive care."""

from seq2tens.experiments.imputation.data import check_present
from seq2tens.experiments.imputation.experiment import EXPERIMENT, cells, measure
from seq2tens.experiments.imputation.table import ImputationCell, ImputationRow

__all__ = ["EXPERIMENT", "ImputationCell", "ImputationRow", "cells", "check_present", "measure"]
