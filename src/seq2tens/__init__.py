"""Seq2Tens: a feature map for sequences, as exact and fast PyTorch layers."""

from seq2tens import algebra, functional, nn
from seq2tens.algebra import FreeTensor, seq2tens, signature, string_features
from seq2tens.functional import ls2t
from seq2tens.nn import LS2T, BiLS2T, DeepLS2T

__version__ = "0.1.0"

__all__ = [
    "LS2T",
    "BiLS2T",
    "DeepLS2T",
    "FreeTensor",
    "algebra",
    "functional",
    "ls2t",
    "nn",
    "seq2tens",
    "signature",
    "string_features",
]
