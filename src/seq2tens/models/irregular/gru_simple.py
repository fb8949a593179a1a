"""GRU-Simple: a recurrent network that is told what is missing."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2tens.models.irregular.network import IrregularNetwork, StaticState, positive
from seq2tens.models.irregular.readings import Readings


class GRUSimple(IrregularNetwork):
    """A gated recurrent network on values carried forward, observation masks and times since observation.

    GRU-Simple of Che et al., "Recurrent neural networks for multivariate time series with missing values"
    (2018). Static features give the initial state.

    Args:
        n_channels: channels of the sequences.
        n_static: static features.
        n_classes: classes.
        width: size of the state.
        dropout: before the last layer.
        horizon: the unit of times since observation, as a rule the span of the sequences.
    """

    def __init__(
        self,
        n_channels: int,
        n_static: int = 0,
        n_classes: int = 2,
        *,
        width: int = 64,
        dropout: float = 0.2,
        horizon: float = 48.0,
    ) -> None:
        super().__init__(n_channels, n_static, n_classes, features=width, dropout=dropout)
        positive("horizon", horizon)
        self.horizon = horizon
        self.initial = StaticState(n_static, width)
        self.recurrent = nn.GRU(3 * n_channels, width, batch_first=True)

    def summarize(self, readings: Readings) -> Float[Tensor, "batch width"]:
        """The state after the last step."""
        rows = torch.cat([readings.filled(), readings.mask, readings.gaps() / self.horizon], dim=-1)
        states, _ = self.recurrent(rows, self.initial(readings.static)[None])
        return readings.last(states)
