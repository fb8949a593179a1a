"""Transformer: attention between the rows of a sequence, each with an encoding of its time."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from typing_extensions import Unpack

from seq2tens import _checks as check
from seq2tens import functional as F
from seq2tens.models.irregular.network import IrregularNetwork, Shared, StaticState, TimeEncoding
from seq2tens.models.irregular.readings import Readings


class TimeSeriesTransformer(IrregularNetwork):
    """A transformer encoder on rows of values and observation masks; the mean over rows is classified.

    Vaswani et al., "Attention is all you need" (2017), with encodings of times instead of positions. Static
    features form an additional first row.

    Args:
        depth: number of layers.
        heads: number of attention heads; `width` must be a multiple of twice this number.

    The other arguments are those of every `IrregularNetwork`; `dropout` is also used in the layers, and
    encodings have wavelengths from a 500th of the `horizon` to four times it.
    """

    def __init__(
        self,
        n_channels: int,
        n_static: int = 0,
        n_classes: int = 2,
        *,
        depth: int = 2,
        heads: int = 4,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(n_channels, n_static, n_classes, **shared)
        width = self.width
        check.positive_int("depth", depth)
        check.require(
            width % (2 * heads) == 0, f"`width` must be a multiple of {2 * heads}, twice `heads`, got {width}"
        )
        self.embedding = nn.Linear(2 * n_channels, width)
        self.encoding = TimeEncoding(width, self.horizon / 500, 4 * self.horizon)
        self.initial = StaticState(n_static, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, 2 * width, self.dropout.p, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, nn.LayerNorm(width), enable_nested_tensor=False)

    def summarize(self, readings: Readings) -> Float[Tensor, "batch width"]:
        """Return the mean over the rows of a sequence."""
        steps = self.embedding(torch.cat([readings.values, readings.mask], dim=-1))
        steps = steps + self.encoding(readings.times)
        rows = torch.cat([self.initial(readings.static)[:, None], steps], dim=1)
        inside = nn.functional.pad(readings.inside, (1, 0), value=True)
        encoded = self.encoder(rows, src_key_padding_mask=~inside)
        return F.masked_mean(encoded, inside)
