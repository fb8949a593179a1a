"""A network for imputation: a causal and an anti-causal direction, combined at each missing entry."""

from seq2tens.models.imputation.hiding import Hide, hidden_entries
from seq2tens.models.imputation.hiding import check_hide as check_hide
from seq2tens.models.imputation.loss import GapSource, PinballLoss
from seq2tens.models.imputation.network import LEVELS, MEDIAN, CausalFiller, GapBatch, GapFiller
from seq2tens.models.imputation.past import Past, look_back

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
