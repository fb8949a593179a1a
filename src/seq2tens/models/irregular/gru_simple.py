"""GRU-Simple: a recurrent network that is told what is missing."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from typing_extensions import Unpack

from seq2tens.models.irregular.network import IrregularNetwork, Shared, StaticState
from seq2tens.models.irregular.readings import Readings


class GRUSimple(IrregularNetwork):
    """A gated recurrent network on values carried forward, observation masks and times since observation.

    GRU-Simple of Che et al., "Recurrent neural networks for multivariate time series with missing values"
    (2018). Static features give the initial state. The arguments are those of every `IrregularNetwork`;
    `horizon` is the unit of times since observation.
    """

    def __init__(
        self, n_channels: int, n_static: int = 0, n_classes: int = 2, **shared: Unpack[Shared]
    ) -> None:
        super().__init__(n_channels, n_static, n_classes, **shared)
        self.initial = StaticState(n_static, self.width)
        self.recurrent = nn.GRU(3 * n_channels, self.width, batch_first=True)

    def summarize(self, readings: Readings) -> Float[Tensor, "batch width"]:
        """The state after the last step."""
        rows = torch.cat([readings.filled(), readings.mask, readings.gaps() / self.horizon], dim=-1)
        states, _ = self.recurrent(rows, self.initial(readings.static)[None])
        return readings.last(states)
