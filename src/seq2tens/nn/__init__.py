"""Layers and blocks. Modules hold parameters; `seq2tens.functional` computes."""

from seq2tens.nn.blocks import DeepLS2T, LevelNorm, LS2TBlock
from seq2tens.nn.layers import LS2T, BiLS2T, LS2TState
from seq2tens.nn.paths import Difference, Lags, TimeEmbedding

__all__ = [
    "LS2T",
    "BiLS2T",
    "DeepLS2T",
    "Difference",
    "LS2TBlock",
    "LS2TState",
    "Lags",
    "LevelNorm",
    "TimeEmbedding",
]
