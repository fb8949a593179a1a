"""A network for imputation that reads values relative to the level of their channel, and its causal half."""

from seq2tens.models.imputation.hiding import Hide, hidden_entries
from seq2tens.models.imputation.hiding import check_hide as check_hide
from seq2tens.models.imputation.loss import GapSource, PinballLoss
from seq2tens.models.imputation.network import GapFiller
from seq2tens.models.imputation.parts import LEVELS, MEDIAN, CausalFiller, GapBatch
from seq2tens.models.imputation.past import Past, look_back
from seq2tens.models.imputation.two_streams import TwoStreamFiller as TwoStreamFiller

__all__ = [
    "LEVELS",
    "MEDIAN",
    "CausalFiller",
    "GapBatch",
    "GapFiller",
    "GapSource",
    "Hide",
    "Past",
    "PinballLoss",
    "hidden_entries",
    "look_back",
]
