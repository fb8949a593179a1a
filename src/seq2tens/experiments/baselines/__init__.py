"""The baselines of the paper, implemented from the descriptions in their publications."""

from seq2tens.experiments.baselines.arkernel import ARKernelClassifier
from seq2tens.experiments.baselines.grsf import GRSFClassifier
from seq2tens.experiments.baselines.lps import LPSClassifier
from seq2tens.experiments.baselines.mlstm_fcn import MLSTMFCN, MLSTMFCNClassifier
from seq2tens.experiments.baselines.mvarf import MVARFClassifier
from seq2tens.experiments.baselines.smts import SMTSClassifier

__all__ = [
    "MLSTMFCN",
    "ARKernelClassifier",
    "GRSFClassifier",
    "LPSClassifier",
    "MLSTMFCNClassifier",
    "MVARFClassifier",
    "SMTSClassifier",
]
