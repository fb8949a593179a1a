"""Parts of networks for imputation: batches, blocks, read-outs, and the causal half."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as torch_F

from seq2tens.models.imputation.past import FEATURES
from seq2tens.nn import LS2T, Dense, MaskedConv, Network, Series, Whole

# Levels of the predicted quantiles of an entry; the fourth is the median.
LEVELS = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)
MEDIAN = LEVELS.index(0.5)
# Smallest distance between quantiles, in standard deviations of a channel.
LEAST_STEP = 1e-4
# Number of features of the state and of the channel's embedding in a read-out.
STATE, NAME = 16, 8

Entries = tuple[Int[Tensor, " entries"], Int[Tensor, " entries"], Int[Tensor, " entries"]]
Quantiles = Float[Tensor, "*rows levels"]


class GapBatch(NamedTuple):
    """Sequences with 0 for entries that were not observed.

    `hidden` marks the entries to predict; None if the loss draws them. Times begin at 0. Beyond `lengths`
    nothing is observed, and times are constant.
    """

    values: Float[Tensor, "rows time channels"]
    observed: Bool[Tensor, "rows time channels"]
    times: Float[Tensor, "rows time"]
    lengths: Int[Tensor, " rows"] | None = None
    static: Float[Tensor, "rows static"] | None = None
    hidden: Bool[Tensor, "rows time channels"] | None = None

    def masked(self, hidden: Bool[Tensor, "rows time channels"]) -> GapBatch:
        """Return the batch as the network sees it, with these entries hidden."""
        observed = self.observed & ~hidden
        return self._replace(values=torch.where(observed, self.values, 0.0), observed=observed, hidden=hidden)

    def to(self, device: torch.device) -> GapBatch:
        """Move all tensors to a device."""
        return GapBatch(*(None if tensor is None else tensor.to(device) for tensor in self))  # type: ignore[arg-type]


class Filled(NamedTuple):
    """Quantiles of entries given all other steps, and given only the steps up to their own."""

    both: Quantiles
    past: Quantiles


class Block(Network):
    """A local convolution, LS2T over the increments, and a perceptron at each step; each added to its input.

    The convolution and LS2T see the steps up to each step, or with `reverse` those from it on. Each
    functional learns its own decay, so that the state keeps its scale for sequences of any length.
    """

    def __init__(self, width: int, functionals: int, kernel: int, dropout: float, reverse: bool) -> None:
        super().__init__()
        self.reverse, self.reach = reverse, kernel - 1
        self.norms = nn.ModuleList([nn.LayerNorm(n) for n in (width, width, 2 * functionals, width)])
        self.convolution = MaskedConv(width, width, kernel)
        self.ls2t = LS2T(width, functionals, 2, decay="learn", reverse=reverse)
        self.project = Dense(2 * functionals, width)
        self.perceptron = nn.Sequential(
            Dense(width, 2 * width), nn.GELU(), Dense(2 * width, width), nn.Dropout(dropout)
        )

    def compute(self, x: Series, context: Whole) -> Tensor:
        """Apply the three residual parts in turn."""
        before_convolution, before_ls2t, after_ls2t, before_perceptron = self.norms
        sides = (0, self.reach) if self.reverse else (self.reach, 0)
        x = x + torch_F.gelu(context.convolve(self.convolution, before_convolution(x), *sides))
        y = context.difference(before_ls2t(x), reverse=self.reverse)
        levels = self.ls2t(y, context=context).flatten(2)
        x = x + self.project(after_ls2t(levels))
        return x + self.perceptron(before_perceptron(x))


class Trunk(Network):
    """Blocks whose output `(batch, time, width)` summarises what each step sees."""

    def __init__(self, in_features: int, width: int, blocks: Sequence[Network]) -> None:
        super().__init__()
        self.in_features = in_features
        self.embed, self.blocks, self.norm = (
            Dense(in_features, width),
            nn.ModuleList(blocks),
            nn.LayerNorm(width),
        )

    def compute(self, x: Series, context: Whole) -> Tensor:
        """Apply the blocks in turn."""
        h = self.embed(x)
        for block in self.blocks:
            h = block(h, context=context)
        return self.norm(h)


class ReadOut(nn.Module):
    """Quantiles of entries, from the features of their channel and the state of their step.

    The median is a fraction of a baseline value, predicted for each entry, plus a correction; the other
    quantiles lie at positive distances from it.
    """

    def __init__(self, channels: int, features: int, width: int, hidden: int) -> None:
        super().__init__()
        self.channels = channels
        self.state = Dense(width, channels * STATE)
        self.name = nn.Parameter(0.3 * torch.randn(channels, NAME))
        self.first, self.second = Dense(features + STATE + NAME, hidden), Dense(hidden, hidden)
        self.last = Dense(hidden, len(LEVELS) + 1)

    def forward(
        self,
        state: Float[Tensor, "batch time width"],
        features: Float[Tensor, "batch time channels features"],
        base: Float[Tensor, "batch time channels"],
        entries: Entries | None = None,
    ) -> Quantiles:
        """Return the quantiles of the given entries, one per row, or of all entries."""
        state_features = self.state(state).unflatten(-1, (self.channels, STATE))
        if entries is None:
            names = self.name.expand(*features.shape[:3], NAME)
        else:
            state_features, features, base = (
                chosen(t, entries)[None] for t in (state_features, features, base)
            )
            names = self.name.index_select(0, entries[2])[None]
        rows = torch.cat([features, state_features, names], dim=-1)
        rows = torch_F.gelu(self.second(torch_F.gelu(self.first(rows))))
        rows = quantiles(self.last(rows), base)
        return rows if entries is None else rows[0]


def chosen(x: Float[Tensor, "batch time channels *rest"], entries: Entries) -> Tensor:
    """Return the entries as rows; the gradient of `index_select` is several times as fast as indexing's."""
    sequence, step, channel = entries
    rows = (sequence * x.shape[1] + step) * x.shape[2] + channel
    return x.flatten(0, 2).index_select(0, rows)


def quantiles(
    raw: Float[Tensor, "*rows outputs"], base: Float[Tensor, "*rows"]
) -> Float[Tensor, "*rows levels"]:
    """Return increasing values around the median, raw[0] plus a fraction sigmoid(raw[1] + 2) of the base."""
    median = (torch.sigmoid(raw[..., 1] + 2) * base + raw[..., 0])[..., None]
    steps = torch_F.softplus(raw[..., 2:] - 1) + LEAST_STEP
    below, above = steps[..., :MEDIAN].cumsum(-1), steps[..., MEDIAN:].cumsum(-1)
    return torch.cat([median - below.flip(-1), median, median + above], dim=-1)


class CausalFiller(Network):
    """The causal half, which can be streamed.

    It maps the features of `look_back` and static features to quantiles, `(batch, time, channels · levels)`.
    """

    def __init__(self, channels: int, static: int, width: int, blocks: list[Block], hidden: int) -> None:
        super().__init__()
        self.channels = channels
        self.trunk = Trunk(FEATURES * channels + 1 + static, width, blocks)
        self.read_out = ReadOut(channels, FEATURES, width, hidden)
        self.in_features = self.trunk.in_features

    def compute(self, x: Series, context: Whole) -> Tensor:
        """Return the quantiles of all entries, as if none of them were observed."""
        features = by_channel(x, self.channels)
        return self.read_out(self.trunk(x, context=context), features, features[..., 0]).flatten(2)


def by_channel(x: Float[Tensor, "batch time features"], channels: int) -> Tensor:
    """Arrange the features of `look_back` by channel, `(batch, time, channels, features)`."""
    return x[..., : FEATURES * channels].unflatten(-1, (FEATURES, channels)).mT


def straight_lines(past: Tensor, future: Tensor) -> tuple[Tensor, Tensor]:
    """Interpolate linearly between the last value and the next; also return the elapsed fraction of the gap.

    If only one of them exists, that value and 0.5 are returned.
    """
    last, _, since, had, *_ = past.unbind(-1)
    following, _, until, has, *_ = future.unbind(-1)
    since, until = since.expm1(), until.expm1()
    between, gap = (had > 0) & (has > 0), since + until
    share = torch.where(between & (gap > 0), since / torch.where(gap > 0, gap, 1.0), 0.5)
    left, right = torch.where(had > 0, last, following), torch.where(has > 0, following, last)
    return left + share * (right - left), share
