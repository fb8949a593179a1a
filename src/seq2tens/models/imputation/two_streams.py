"""The earlier network of `LS2TImputer`, for models that were saved with it."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2tens.models.imputation.parts import (
    Block,
    CausalFiller,
    Entries,
    Filled,
    GapBatch,
    Quantiles,
    ReadOut,
    Trunk,
    by_channel,
    straight_lines,
)
from seq2tens.models.imputation.past import FEATURES, look_back


class Encoded(NamedTuple):
    """Features of each channel from before and from after each step, and the states of the two streams."""

    back: Float[Tensor, "batch time channels features"]
    ahead: Float[Tensor, "batch time channels features"]
    past: Float[Tensor, "batch time width"]
    future: Float[Tensor, "batch time width"]


class TwoStreamFiller(nn.Module):
    """Predicts quantiles of entries from a causal and an anti-causal trunk that read values as they are.

    The arguments are those of `GapFiller`.
    """

    def __init__(
        self,
        channels: int,
        static: int = 0,
        *,
        width: int = 64,
        functionals: int = 32,
        depth: int = 2,
        kernel: int = 3,
        hidden: int = 64,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        past, future = (
            [Block(width, functionals, kernel, dropout, reverse) for _ in range(depth)]
            for reverse in (False, True)
        )
        self.causal = CausalFiller(channels, static, width, past, hidden)
        self.future = Trunk(self.causal.trunk.embed.in_features, width, future)
        self.read_out = ReadOut(channels, 2 * FEATURES + 2, 2 * width, hidden)

    def forward(self, batch: GapBatch, entries: Entries) -> Filled:
        """Return the quantiles of the entries, which must not be observed."""
        encoded = self.encode(batch)
        return Filled(self.predict(encoded, entries), self.predict_causally(encoded, entries))

    def encode(self, batch: GapBatch) -> Encoded:
        """Return the states of both directions at each step."""
        back, ahead = self.views(batch)
        return Encoded(
            by_channel(back, self.causal.channels),
            by_channel(ahead, self.causal.channels),
            self.causal.trunk(back, lengths=batch.lengths),
            self.future(ahead, lengths=batch.lengths),
        )

    def predict(self, encoded: Encoded, entries: Entries) -> Quantiles:
        """Return the quantiles of entries, given all other steps."""
        line, share = straight_lines(encoded.back, encoded.ahead)
        features = torch.cat([encoded.back, encoded.ahead, line[..., None], share[..., None]], dim=-1)
        return self.read_out(torch.cat([encoded.past, encoded.future], dim=-1), features, line, entries)

    def predict_causally(self, encoded: Encoded, entries: Entries) -> Quantiles:
        """Return the quantiles of entries, given the steps up to their own."""
        return self.causal.read_out(encoded.past, encoded.back, encoded.back[..., 0], entries)

    @staticmethod
    def views(batch: GapBatch) -> list[Float[Tensor, "batch time features"]]:
        """Return the inputs of the two directions: every step with its past, and with its future."""
        values, observed, times, _, static, _ = batch
        back, _ = look_back(values, observed, times)
        ahead, _ = look_back(values.flip(1), observed.flip(1), times.flip(1))
        rows = [] if static is None else [static[:, None].expand(-1, values.shape[1], -1)]
        return [torch.cat([x, *rows], dim=-1) for x in (back, ahead.flip(1))]
