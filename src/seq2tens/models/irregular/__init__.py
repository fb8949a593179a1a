"""Classifiers of sequences at irregular times with missing entries, written from their papers' descriptions.

All have one interface: `Network(n_channels, n_static, n_classes, ...)`, called with a `data.Batch` of
standardised values, returns logits. They train with `training.fit` on an `IrregularSource`.
"""

from seq2tens.models.irregular.gru_d import GRUD
from seq2tens.models.irregular.gru_simple import GRUSimple
from seq2tens.models.irregular.ip_net import IPNet
from seq2tens.models.irregular.latent_ode import LatentODE
from seq2tens.models.irregular.network import IrregularNetwork
from seq2tens.models.irregular.phased_lstm import PhasedLSTM
from seq2tens.models.irregular.scaling import IrregularScaler
from seq2tens.models.irregular.seft import SeFT
from seq2tens.models.irregular.source import IrregularSource
from seq2tens.models.irregular.transformer import TimeSeriesTransformer

NETWORKS: dict[str, type[IrregularNetwork]] = {
    "gru-simple": GRUSimple,
    "gru-d": GRUD,
    "phased-lstm": PhasedLSTM,
    "ip-nets": IPNet,
    "transformer": TimeSeriesTransformer,
    "seft": SeFT,
    "latent-ode": LatentODE,
}

__all__ = [
    "GRUD",
    "NETWORKS",
    "GRUSimple",
    "IPNet",
    "IrregularNetwork",
    "IrregularScaler",
    "IrregularSource",
    "LatentODE",
    "PhasedLSTM",
    "SeFT",
    "TimeSeriesTransformer",
]
