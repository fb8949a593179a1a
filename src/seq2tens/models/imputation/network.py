"""A network for imputation that reads values relative to the level of their channel around them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as torch_F

from seq2tens._moved import moved_attributes
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
from seq2tens.models.imputation.past import look_back
from seq2tens.nn import LS2T, Dense, MaskedConv, Network, Series, Whole

# Number of steps to either side over which the level of a channel is averaged: a whole piece of training.
REACH = 128
# Number of features of a channel at a step, for the trunk and for the read-out.
INPUTS, FEATURES = 6, 9

Values = Float[Tensor, "batch time channels"]


class Encoded(NamedTuple):
    """The state of each step, features and linear interpolation of each entry, and the channel's level."""

    state: Float[Tensor, "batch time state"]
    features: Float[Tensor, "batch time channels features"]
    line: Values
    level: Values


class TwoSidedBlock(Network):
    """A centred convolution, LS2T over the increments in both directions of time, and a perceptron.

    Each is added to its input. Each functional learns its own decay, so that the state keeps its scale for
    sequences of any length.
    """

    def __init__(self, width: int, functionals: int, kernel: int, dropout: float) -> None:
        super().__init__()
        self.sides = (kernel - 1) // 2, kernel // 2
        self.norms = nn.ModuleList([nn.LayerNorm(n) for n in (width, width, 4 * functionals, width)])
        self.convolution = MaskedConv(width, width, kernel)
        self.past = LS2T(width, functionals, 2, decay="learn")
        self.future = LS2T(width, functionals, 2, decay="learn", reverse=True)
        self.project = Dense(4 * functionals, width)
        self.perceptron = nn.Sequential(
            Dense(width, 2 * width),
            nn.GELU(),
            nn.Dropout(dropout),
            Dense(2 * width, width),
            nn.Dropout(dropout),
        )

    def compute(self, x: Series, context: Whole) -> Tensor:
        """Apply the three residual parts in turn."""
        before_convolution, before_ls2t, after_ls2t, before_perceptron = self.norms
        x = x + torch_F.gelu(context.convolve(self.convolution, before_convolution(x), *self.sides))
        y = before_ls2t(x)
        padded = context.halo(y, 1, 1)
        past = self.past(y - padded[:, :-2], context=context)
        future = self.future(y - padded[:, 2:], context=context)
        levels = torch.cat([past.flatten(2), future.flatten(2)], dim=-1)
        x = x + self.project(after_ls2t(levels))
        return x + self.perceptron(before_perceptron(x))


class GapFiller(nn.Module):
    """Predicts quantiles of the entries of sequences; see `LS2TImputer`.

    The trunk reads, for every channel, the value or the linear interpolation, minus the level of the channel
    around the step; and how far an observed value is from the interpolation of its neighbours. Thus the same
    course at another level is filled in the same way, if the level is known from many values; with few, it is
    shrunk towards the mean in training.

    Args:
        channels: number of channels of the sequences; values must be standardised.
        static: number of static features.
        width: width of the hidden state.
        functionals: number of functionals of each LS2T layer, of order 2, in each direction of time.
        depth: number of blocks, for both directions as for the causal half.
        kernel: kernel size of the convolutions.
        hidden: hidden width of the read-out network.
        dropout: dropout rate.
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
        past = [Block(width, functionals, kernel, dropout, reverse=False) for _ in range(depth)]
        self.causal = CausalFiller(channels, static, width, past, hidden)
        blocks = [TwoSidedBlock(width, functionals, kernel, dropout) for _ in range(depth)]
        self.trunk = Trunk(INPUTS * channels + 2 + static, width, blocks)
        # The read-out sees the other channels of its step without the norms of the trunk, which hide scales.
        self.read_out = ReadOut(channels, FEATURES, width + 2 * channels, hidden)

    def forward(self, batch: GapBatch, entries: Entries) -> Filled:
        """Return the quantiles of the entries, which must not be observed."""
        return Filled(self.predict(self.encode(batch), entries), self.predict_causally(batch, entries))

    def encode(self, batch: GapBatch) -> Encoded:
        """Return what `predict` needs to know of each step."""
        values, observed = batch.values, batch.observed
        back, ahead = neighbours(batch)
        (last, _, since, had, *_), (following, _, until, has, *_) = (
            by_channel(x, values.shape[2]).unbind(-1) for x in (back, ahead)
        )
        level, count = local_level(values, observed)
        line, share = straight_lines(*(by_channel(x, values.shape[2]) for x in (back, ahead)))
        line = torch.where((had > 0) | (has > 0), line, level)
        seen, number = observed.to(values.dtype), count.log1p()
        surprise = torch.where(observed, values - line, 0.0)
        relative = torch.where(observed, values, line) - level
        steps = [back[..., -1:], ahead[..., -1:], *_static_rows(batch)]
        rows = torch.cat([relative, seen, surprise, since, until, number, *steps], dim=-1)
        ends = torch.where(had > 0, last - line, 0.0), torch.where(has > 0, following - line, 0.0)
        features = torch.stack([line - level, *ends, since, until, had, has, share, number], dim=-1)
        state = torch.cat([self.trunk(rows, lengths=batch.lengths), surprise, seen], dim=-1)
        return Encoded(state, features, line, level)

    def predict(self, encoded: Encoded, entries: Entries) -> Quantiles:
        """Return the quantiles of entries, given all other steps."""
        state, features, line, level = encoded
        return self.read_out(state, features, line - level, entries) + level[entries][:, None]

    def predict_causally(self, batch: GapBatch, entries: Entries) -> Quantiles:
        """Return the quantiles of entries, given the steps up to their own."""
        back, _ = look_back(batch.values, batch.observed, batch.times)
        past = self.causal.trunk(torch.cat([back, *_static_rows(batch)], dim=-1), lengths=batch.lengths)
        features = by_channel(back, self.causal.channels)
        return self.causal.read_out(past, features, features[..., 0], entries)

    __getattr__ = moved_attributes(
        {"tell": "predict", "tell_by_past": "predict_causally"}, nn.Module.__getattr__
    )


def local_level(values: Values, observed: Bool[Tensor, "batch time channels"]) -> tuple[Values, Values]:
    """Return the mean of each channel over the steps around each step, and the number of its values.

    The mean is shrunk towards 0, as if there were one more value of 0.
    """
    steps = torch.arange(values.shape[1], device=values.device)
    low, high = (steps - REACH).clamp(min=0), (steps + REACH + 1).clamp(max=values.shape[1])
    known = torch.where(observed, values, 0.0)
    # In doubles: differences of long sums.
    sums = (torch_F.pad(x.double().cumsum(1), (0, 0, 1, 0)) for x in (known, observed))
    total, count = ((x[:, high] - x[:, low]).to(values.dtype) for x in sums)
    return total / (count + 1), count


def neighbours(batch: GapBatch) -> tuple[Tensor, Tensor]:
    """Return the features of `look_back` from the steps before each step, and from those after it."""
    values, observed, times = batch.values, batch.observed, batch.times
    back, _ = look_back(values, observed, times, own=False)
    ahead, _ = look_back(values.flip(1), observed.flip(1), times.flip(1), own=False)
    return back, ahead.flip(1)


def _static_rows(batch: GapBatch) -> list[Float[Tensor, "batch time static"]]:
    static = batch.static
    return [] if static is None else [static[:, None].expand(-1, batch.values.shape[1], -1)]
