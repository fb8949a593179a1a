"""GRU-D: a recurrent network whose inputs and state decay while nothing is observed."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as torch_F
from typing_extensions import Unpack

from seq2tens.models.irregular.network import IrregularNetwork, Shared, StaticState
from seq2tens.models.irregular.readings import Readings
from seq2tens.models.irregular.recurrent import gru_step, mask_like


class GRUD(IrregularNetwork):
    """A gated recurrent network with learned decays.

    GRU-D of Che et al., "Recurrent neural networks for multivariate time series with missing values" (2018):
    with the time δ since a channel was observed, its last value decays towards the mean by
    exp(-max(0, w δ + b)), and the state decays towards 0 by exp(-max(0, W δ + b)) of all channels' δ.

    Static features determine the initial state. Unlike here, the GRU-D of PyPOTS also takes the decayed state
    as a further input.

    Args:
        input_dropout: see `DropoutGRU`.
        recurrent_dropout: see `DropoutGRU`.

    The other arguments are those of every `IrregularNetwork`; `horizon` is the unit of δ.
    """

    def __init__(
        self,
        n_channels: int,
        n_static: int = 0,
        n_classes: int = 2,
        *,
        input_dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(n_channels, n_static, n_classes, **shared)
        self.input_dropout, self.recurrent_dropout = input_dropout, recurrent_dropout
        self.initial = StaticState(n_static, self.width)
        # Rates start above 0, since the maximum has no gradient below it.
        self.input_rate = nn.Parameter(torch.rand(n_channels))
        self.input_offset = nn.Parameter(torch.zeros(n_channels))
        self.state_rate = nn.Linear(n_channels, self.width)
        self.cell = nn.GRUCell(2 * n_channels, self.width)

    def summarize(self, readings: Readings) -> Float[Tensor, "batch width"]:
        """Return the state after the last step."""
        gaps = readings.gaps() / self.horizon
        decayed = readings.filled() * decay(self.input_rate * gaps + self.input_offset)
        values = torch.where(readings.observed, readings.values, decayed)
        rows = torch.cat([values, readings.mask], dim=-1)
        if self.training and self.input_dropout:
            rows = rows * mask_like(rows[:, :1], self.input_dropout)
        inputs = torch_F.linear(rows, self.cell.weight_ih, self.cell.bias_ih).unbind(1)
        state, states = self.initial(readings.static), []
        visible = mask_like(state, self.recurrent_dropout if self.training else 0.0)
        for x, state_decay in zip(inputs, decay(self.state_rate(gaps)).unbind(1), strict=True):
            state = state_decay * state
            state = gru_step(x, state, visible * state, (self.cell.weight_hh, self.cell.bias_hh))
            states.append(state)
        return readings.last(torch.stack(states, dim=1))


def decay(exponent: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """Return the factor exp(-max(0, exponent)), between 0 and 1."""
    return torch.exp(-exponent.relu())
