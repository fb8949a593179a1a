"""Layers, blocks and networks. Modules hold the parameters; `seq2tens.functional` computes."""

from seq2tens.nn.alignment import Series as Series
from seq2tens.nn.alignment import align as align
from seq2tens.nn.alignment import restore as restore
from seq2tens.nn.blocks import DeepLS2T, LevelNorm, LS2TBlock
from seq2tens.nn.context import Network, Whole
from seq2tens.nn.context import call_in_context as call_in_context
from seq2tens.nn.context import difference_by_halo as difference_by_halo
from seq2tens.nn.context import takes_context as takes_context
from seq2tens.nn.convolutional import FCN, ResNet
from seq2tens.nn.convolutional import KERNEL_SIZES as KERNEL_SIZES
from seq2tens.nn.convolutional import ConvBlock as ConvBlock
from seq2tens.nn.dense import Dense as Dense
from seq2tens.nn.layers import LS2T, BiLS2T, LS2TState
from seq2tens.nn.long import checkpoint_chunks, chunkwise, time_chunks
from seq2tens.nn.masked import MaskedBatchNorm, MaskedConv, mean_pool
from seq2tens.nn.masked import check_rate as check_rate
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
