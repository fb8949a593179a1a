"""Estimators that impute missing values of sequences."""

from seq2tens.estimators.imputers.autoencoder import LatentImputer
from seq2tens.estimators.imputers.base import Imputer
from seq2tens.estimators.imputers.interpolation import ForwardImputer, LinearImputer, MeanImputer
from seq2tens.estimators.imputers.live import ImputerStream
from seq2tens.estimators.imputers.ls2t import LS2TImputer
from seq2tens.estimators.imputers.point import PointImputer
from seq2tens.estimators.imputers.pypots import PyPOTSImputer
from seq2tens.estimators.imputers.pypots_networks import (
    BRITSImputer,
    CSDIImputer,
    HELIXImputer,
    ImputeFormerImputer,
    SAITSImputer,
    TimesNetImputer,
)
from seq2tens.estimators.imputers.report import ImputationReport, imputation_report
from seq2tens.estimators.imputers.vae import GPVAEImputer, HIVAEImputer, VAEImputer

# Names on the command line.
IMPUTERS: dict[str, type[Imputer]] = {
    "ls2t": LS2TImputer,
    "gp-vae": GPVAEImputer,
    "hi-vae": HIVAEImputer,
    "vae": VAEImputer,
    "mean": MeanImputer,
    "forward": ForwardImputer,
    "linear": LinearImputer,
    "brits": BRITSImputer,
    "saits": SAITSImputer,
    "timesnet": TimesNetImputer,
    "imputeformer": ImputeFormerImputer,
    "helix": HELIXImputer,
    "csdi": CSDIImputer,
}

__all__ = [
    "IMPUTERS",
    "BRITSImputer",
    "CSDIImputer",
    "ForwardImputer",
    "GPVAEImputer",
    "HELIXImputer",
    "HIVAEImputer",
    "ImputationReport",
    "ImputeFormerImputer",
    "Imputer",
    "ImputerStream",
    "LS2TImputer",
    "LatentImputer",
    "LinearImputer",
    "MeanImputer",
    "PointImputer",
    "PyPOTSImputer",
    "SAITSImputer",
    "TimesNetImputer",
    "VAEImputer",
    "imputation_report",
]
