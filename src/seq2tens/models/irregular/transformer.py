"""Transformer: attention between the rows of a sequence, each with an encoding of its time."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens.models.irregular.network import IrregularNetwork, StaticState, TimeEncoding, positive
from seq2tens.models.irregular.readings import Readings


class TimeSeriesTransformer(IrregularNetwork):
    """The encoder of a transformer on rows of values and observation masks; the mean over rows is classified.

    Vaswani et al., "Attention is all you need" (2017), with encodings of real times in place of positions.
    Static features are a row of their own before all others.

    Args:
        n_channels: channels of the sequences.
        n_static: static features.
        n_classes: classes.
        width: size of a row, a multiple of twice `heads`.
        depth: number of layers.
        heads: attention heads.
        dropout: in the layers and before the last one.
        horizon: the span of the sequences; encodings have wavelengths from a 500th of it to four times it.
    """

    def __init__(
        self,
        n_channels: int,
        n_static: int = 0,
        n_classes: int = 2,
        *,
        width: int = 64,
        depth: int = 2,
        heads: int = 4,
        dropout: float = 0.2,
        horizon: float = 48.0,
    ) -> None:
        super().__init__(n_channels, n_static, n_classes, features=width, dropout=dropout)
        positive("horizon", horizon)
        check.positive_int("depth", depth)
        check.require(
            width % (2 * heads) == 0, f"`width` must be a multiple of {2 * heads}, twice `heads`, got {width}"
        )
        self.embedding = nn.Linear(2 * n_channels, width)
        self.encoding = TimeEncoding(width, horizon / 500, 4 * horizon)
        self.initial = StaticState(n_static, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, 2 * width, dropout, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, nn.LayerNorm(width), enable_nested_tensor=False)

    def summarize(self, readings: Readings) -> Float[Tensor, "batch width"]:
        """The mean over the rows of a sequence."""
        steps = self.embedding(torch.cat([readings.values, readings.mask], dim=-1))
        steps = steps + self.encoding(readings.times)
        rows = torch.cat([self.initial(readings.static)[:, None], steps], dim=1)
        inside = nn.functional.pad(readings.inside, (1, 0), value=True)
        encoded = self.encoder(rows, src_key_padding_mask=~inside)
        return torch.where(inside[..., None], encoded, 0.0).sum(1) / inside.sum(1, keepdim=True)
