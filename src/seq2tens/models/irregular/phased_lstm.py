"""Phased LSTM: every unit has its own clock and changes only while its gate is open."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from typing_extensions import Unpack

from seq2tens import _checks as check
from seq2tens.models.irregular.network import IrregularNetwork, Shared, StaticState
from seq2tens.models.irregular.readings import Fill, Readings

# From the paper: the fraction of its period for which a gate is initially open, and the leak of closed gates.
OPEN_RATIO = 0.05
LEAK = 0.001


class TimeGate(nn.Module):
    """The openness of the gate of each unit at given times, between 0 and 1.

    A gate rises and falls linearly in the first `ratio` of its period. In training, a closed gate leaks a
    little, so that gradients can pass. Periods are initialised log-uniformly between a hundredth of the
    horizon and the horizon.
    """

    def __init__(self, width: int, horizon: float, leak: float = LEAK) -> None:
        super().__init__()
        periods = horizon * 100 ** (torch.rand(width) - 1)
        self.log_period = nn.Parameter(periods.log())
        self.shift = nn.Parameter(periods * torch.rand(width))
        self.ratio_logit = nn.Parameter(torch.full((width,), math.log(OPEN_RATIO / (1 - OPEN_RATIO))))
        self.leak = leak

    def forward(self, times: Float[Tensor, "*any"]) -> Float[Tensor, "*any width"]:
        """Return the openness along a new last axis."""
        turns = (times[..., None] - self.shift) / self.log_period.exp()
        phase = turns - turns.floor()
        # 0 at the beginning of the open part, 1 in its middle, 2 at its end
        position = 2 * phase / self.ratio_logit.sigmoid()
        closed = self.leak * phase if self.training else torch.zeros_like(phase)
        return torch.where(position < 2, 1 - (1 - position).abs(), closed)


class PhasedLSTM(IrregularNetwork):
    """A long short-term memory whose units are updated in phases of real time.

    Neil, Pfeiffer and Liu, "Phased LSTM: accelerating recurrent network training for long or event-based
    sequences" (2016). It reads values and observation masks; static features determine the initial state.

    Args:
        fill: fill missing entries with the channel's `"last"` value or with `"zero"`, the mean.
        since_observed: also read the time since each channel was observed, in the unit of times.
        leak: leak of closed gates in training.

    The other arguments are those of every `IrregularNetwork`; `horizon` is the longest initial period.
    """

    def __init__(
        self,
        n_channels: int,
        n_static: int = 0,
        n_classes: int = 2,
        *,
        fill: Fill = "last",
        since_observed: bool = False,
        leak: float = LEAK,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(n_channels, n_static, n_classes, **shared)
        check.choice("fill", fill, ("last", "zero"))
        self.fill, self.since_observed = fill, since_observed
        self.initial = StaticState(n_static, self.width)
        self.gate = TimeGate(self.width, self.horizon, leak)
        self.cell = nn.LSTMCell((3 if since_observed else 2) * n_channels, self.width)

    def summarize(self, readings: Readings) -> Float[Tensor, "batch width"]:
        """Return the output after the last step."""
        rows = [readings.filled(self.fill), readings.mask]
        inputs = torch.cat([*rows, readings.gaps()] if self.since_observed else rows, dim=-1).unbind(1)
        output = self.initial(readings.static)
        memory, outputs = torch.zeros_like(output), []
        for x, openness in zip(inputs, self.gate(readings.times).unbind(1), strict=True):
            new_output, new_memory = self.cell(x, (output, memory))
            output = torch.lerp(output, new_output, openness)
            memory = torch.lerp(memory, new_memory, openness)
            outputs.append(output)
        return readings.last(torch.stack(outputs, dim=1))
