"""Layers, blocks and networks. Modules hold parameters; `seq2tens.functional` computes."""

from seq2tens.nn.blocks import DeepLS2T, LevelNorm, LS2TBlock
from seq2tens.nn.layers import LS2T, BiLS2T, LS2TState
from seq2tens.nn.long import checkpoint_chunks, chunkwise, time_chunks
from seq2tens.nn.masked import MaskedBatchNorm, MaskedConv, mean_pool
from seq2tens.nn.networks import FCN, FCNLS2T, ResNet
from seq2tens.nn.paths import Difference, Lags, TimeEmbedding
from seq2tens.nn.streaming import Stream

__all__ = [
    "FCN",
    "FCNLS2T",
    "LS2T",
    "BiLS2T",
    "DeepLS2T",
    "Difference",
    "LS2TBlock",
    "LS2TState",
    "Lags",
    "LevelNorm",
    "MaskedBatchNorm",
    "MaskedConv",
    "ResNet",
    "Stream",
    "TimeEmbedding",
    "checkpoint_chunks",
    "chunkwise",
    "mean_pool",
    "time_chunks",
]
