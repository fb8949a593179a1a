"""GRU-D with the layers of PyPOTS, an independent implementation to compare with."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2tens.data._optional import optional
from seq2tens.models.irregular.network import IrregularNetwork, positive
from seq2tens.models.irregular.readings import Readings


class PyPOTSGRUD(IrregularNetwork):
    """The recurrent layers of PyPOTS's GRU-D, given real times and sequences of unequal length.

    PyPOTS itself puts sequences on a grid and counts its steps; its layers take any gaps. They differ from
    the paper's in that the decayed state is an input, too. Their initial state is 0, so static features are
    joined to the last one. Needs the extra `baselines`; importing PyPOTS takes some seconds.

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
        super().__init__(n_channels, n_static, n_classes, features=width + n_static, dropout=dropout)
        positive("horizon", horizon)
        self.horizon = horizon
        layers = optional("pypots.nn.modules.grud", "`PyPOTSGRUD`")
        self.layers: nn.Module = layers.BackboneGRUD(1, n_channels, width)

    def summarize(self, readings: Readings) -> Float[Tensor, "batch features"]:
        """The state after the last step, and the static features."""
        gaps = readings.gaps() / self.horizon
        series = [readings.values, readings.mask, gaps, torch.zeros_like(gaps[0, 0]), readings.filled()]
        # Its states are handed out after they have decayed into the next step: one step more gives the last.
        series = [nn.functional.pad(each, (0, 0, 0, 1)) if each.dim() == 3 else each for each in series]
        self.layers.n_steps = series[0].shape[1]  # type: ignore[assignment]
        decayed, _ = self.layers(*series)
        rows = torch.arange(len(decayed), device=decayed.device)
        after = decayed[rows, readings.inside.sum(1)]
        state = after / self.layers.temp_decay_h(torch.zeros_like(gaps[0, :1]))  # type: ignore[operator]
        return torch.cat([state, readings.static], dim=-1)
