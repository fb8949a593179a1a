"""GRU-D with the layers of PyPOTS, an independent implementation to compare with."""

import pytest
import torch
from torch import nn

from seq2tens.models.irregular import IrregularNetwork


class PyPOTSGRUD(IrregularNetwork):
    """The recurrent layers of PyPOTS's GRU-D, given real times and sequences of unequal length.

    PyPOTS itself puts sequences on a grid and counts its steps; its layers take any gaps. They differ from
    the paper's in that the decayed state is an input, too. Their initial state is 0, so static features are
    joined to the last one. Importing PyPOTS takes some seconds.
    """

    def __init__(self, n_channels, n_static=0, n_classes=2, *, width=64):
        super().__init__(n_channels, n_static, n_classes, width=width, features=width + n_static)
        layers = pytest.importorskip("pypots.nn.modules.grud", reason="pip install 'seq2tens[baselines]'")
        self.layers = layers.BackboneGRUD(1, n_channels, width)

    def summarize(self, readings):
        """The state after the last step, and the static features."""
        gaps = readings.gaps() / self.horizon
        series = [readings.values, readings.mask, gaps, torch.zeros_like(gaps[0, 0]), readings.filled()]
        # Its states are handed out after they have decayed into the next step: one step more gives the last.
        series = [nn.functional.pad(each, (0, 0, 0, 1)) if each.dim() == 3 else each for each in series]
        self.layers.n_steps = series[0].shape[1]
        decayed, _ = self.layers(*series)
        rows = torch.arange(len(decayed), device=decayed.device)
        after = decayed[rows, readings.inside.sum(1)]
        state = after / self.layers.temp_decay_h(torch.zeros_like(gaps[0, :1]))
        return torch.cat([state, readings.static], dim=-1)
