"""Convolutions with squeeze-and-excitation, in parallel with an LSTM (Karim et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as torch_F

from seq2tens import _checks as check
from seq2tens.estimators import TEST_PARAMS, NetworkClassifier
from seq2tens.nn import KERNEL_SIZES, ConvBlock, align, check_rate, mean_pool

SequenceBatch = Float[Tensor, "batch time channels"]
Mask = Bool[Tensor, "batch time"]


class SqueezeExcitation(nn.Module):
    """Squeeze-and-excitation: gates for channels, computed from their means over time."""

    def __init__(self, channels: int, reduction: int = 16) -> None:
        super().__init__()
        narrow = max(channels // reduction, 1)
        self.squeeze = nn.Linear(channels, narrow, bias=False)
        self.excite = nn.Linear(narrow, channels, bias=False)
        for layer in (self.squeeze, self.excite):
            nn.init.kaiming_normal_(layer.weight)

    def forward(self, x: SequenceBatch, mask: Mask | None = None) -> SequenceBatch:
        """Weight the channels; their means are over valid steps."""
        gates = self.excite(self.squeeze(mean_pool(x, mask)).relu()).sigmoid()
        return x * gates[:, None]


class LastState(nn.Module):
    """The state of an LSTM after the last valid step of aligned sequences.

    Weights are initialised as in Keras: Glorot uniform for inputs, orthogonal for states, and 1 for the bias
    of the forget gate.
    """

    def __init__(self, in_features: int, cells: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(in_features, cells, batch_first=True)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialise the weights."""
        cells = self.lstm.hidden_size
        from_input, from_state, bias, second_bias = self.lstm.parameters()
        nn.init.xavier_uniform_(from_input)
        nn.init.orthogonal_(from_state)
        bias.zero_()
        second_bias.zero_()
        bias[cells : 2 * cells] = 1  # gates are in the order input, forget, cell, output

    def forward(self, x: SequenceBatch, mask: Mask | None = None) -> Float[Tensor, "batch cells"]:
        """Return the state at the last valid step; padding comes after it and has no effect."""
        states, _ = self.lstm(x)
        if mask is None:
            return states[:, -1]
        lengths = mask.sum(dim=1)
        last = states[torch.arange(len(x), device=x.device), (lengths - 1).clamp(min=0)]
        return last * (lengths > 0)[:, None]


class MLSTMFCN(nn.Module):
    """Three convolutions (kernels 8, 5, 3; filters width, 2 · width, width), averaged over time, and the last
    state of an LSTM: `(batch, time, in_features)` to `(batch, width + cells)`.

    The LSTM reads step by step. To be faster, the original may read channel by channel instead, all steps of
    a channel at once (dimension shuffle), which is not possible for sequences of unequal length.

    Args:
        in_features: number of channels of the input.
        width: number of filters of the first and last convolution.
        cells: size of the LSTM's state.
        dropout: dropout rate of the LSTM's state.
    """

    def __init__(self, in_features: int, width: int = 128, cells: int = 8, *, dropout: float = 0.8) -> None:
        super().__init__()
        for name, value in [("in_features", in_features), ("width", width), ("cells", cells)]:
            check.positive_int(name, value)
        check_rate("dropout", dropout)
        self.in_features, self.out_features, self.dropout = in_features, width + cells, dropout
        widths = (width, 2 * width, width)
        sizes = zip((in_features, *widths), widths, KERNEL_SIZES, strict=False)
        self.convolutions = nn.ModuleList(ConvBlock(*size) for size in sizes)
        self.excitations = nn.ModuleList(SqueezeExcitation(size) for size in widths[:-1])
        self.lstm = LastState(in_features, cells)

    def forward(
        self, x: SequenceBatch, mask: Mask | None = None, lengths: Int[Tensor, " batch"] | None = None
    ) -> Float[Tensor, "batch out_features"]:
        """Compute the features; padding is ignored, wherever it is."""
        x, mask, _ = align(x, mask, lengths)
        state = torch_F.dropout(self.lstm(x, mask), self.dropout, self.training)
        first, second, third = self.convolutions
        x = self.excitations[0](first(x, mask), mask)
        x = self.excitations[1](second(x, mask), mask)
        return torch.cat([mean_pool(third(x, mask), mask), state], dim=1)


@dataclass(kw_only=True, eq=False, repr=False)
class MLSTMFCNClassifier(NetworkClassifier):
    """MLSTM-FCN, a baseline.

    Arguments of `MLSTMFCN` and of every `NetworkClassifier`.
    """

    width: int = 128
    cells: int = 8
    dropout: float = 0.8

    _features = MLSTMFCN

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return {**TEST_PARAMS, "width": 4, "cells": 2}
