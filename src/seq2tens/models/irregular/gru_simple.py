"""GRU-Simple: a recurrent network with observation masks as additional inputs."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import Unpack

from seq2tens import _checks as check
from seq2tens.models.irregular.network import IrregularNetwork, Shared, StaticState
from seq2tens.models.irregular.readings import Fill, Readings
from seq2tens.models.irregular.recurrent import DropoutGRU


class GRUSimple(IrregularNetwork):
    """A gated recurrent network on values, observation masks and times since observation.

    GRU-Simple of Che et al., "Recurrent neural networks for multivariate time series with missing values"
    (2018). Static features determine the initial state.

    Args:
        fill: fill missing entries with the channel's `"last"` value or with `"zero"`, the mean.
        input_dropout: see `DropoutGRU`.
        recurrent_dropout: see `DropoutGRU`.

    The other arguments are those of every `IrregularNetwork`; `horizon` is the unit of times since
    observation.
    """

    def __init__(
        self,
        n_channels: int,
        n_static: int = 0,
        n_classes: int = 2,
        *,
        fill: Fill = "last",
        input_dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(n_channels, n_static, n_classes, **shared)
        check.choice("fill", fill, ("last", "zero"))
        self.fill = fill
        self.initial = StaticState(n_static, self.width)
        self.recurrent = DropoutGRU(3 * n_channels, self.width, input_dropout, recurrent_dropout)

    def summarize(self, readings: Readings) -> Float[Tensor, "batch width"]:
        """Return the state after the last step."""
        values, gaps = readings.filled(self.fill), readings.gaps() / self.horizon
        rows = torch.cat([values, readings.mask, gaps], dim=-1)
        return readings.last(self.recurrent(rows, self.initial(readings.static)))
