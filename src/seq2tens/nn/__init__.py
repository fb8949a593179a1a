"""Layers, blocks and networks. Modules hold the parameters; `seq2tens.functional` computes."""

from seq2tens.nn.blocks import DeepLS2T, LevelNorm, LS2TBlock
from seq2tens.nn.context import Network, Whole
from seq2tens.nn.convolutional import FCN, ResNet
from seq2tens.nn.layers import LS2T, BiLS2T, LS2TState
from seq2tens.nn.long import checkpoint_chunks, chunkwise, time_chunks
from seq2tens.nn.masked import MaskedBatchNorm, MaskedConv, mean_pool
from seq2tens.nn.networks import FCNLS2T
from seq2tens.nn.neural import NeuralLS2T
from seq2tens.nn.paths import Difference, Lags, TimeEmbedding
from seq2tens.nn.recurrent import RecurrentLS2T, RecurrentState
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
    "Network",
    "NeuralLS2T",
    "RecurrentLS2T",
    "RecurrentState",
    "ResNet",
    "Stream",
    "TimeEmbedding",
    "Whole",
    "checkpoint_chunks",
    "chunkwise",
    "mean_pool",
    "time_chunks",
]
