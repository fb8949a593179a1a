"""One block of random features: pooled convolutions, and pooled functionals of their order in time.

A block is drawn from a seed, then calibrated: its convolutions and functionals are divided by their root
mean square over a sample of the training sequences, and its thresholds are values that occur there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2tens import functional as F
from seq2tens.ops.pooling import PathPools, pool_contest, pool_path

KERNELS = 32  # convolutions of a block, and functionals of each level
GROUP = 8  # number of convolutions that compete with each other
MOST_CHANNELS = 16  # largest number of channels that a block reads
TAPS = 7
SILENCE = 1e-4  # energy below which a path, of mean square 1 in training, counts as silent
# Blocks alternate between these: whether they read increments, and whether the taps sum to 0 per channel.
VARIANTS = ((False, False), (False, True), (True, True), (True, False))


class Design(NamedTuple):
    """How paths become features: names of the pools, and the steepness of comparisons with a threshold."""

    convolutions: tuple[str, ...]
    levels: tuple[str, ...]  # for levels above the first
    steepness: float

    def n_features(self, order: int) -> int:
        """Return the number of features of a block."""
        return KERNELS * (len(self.convolutions) + len(self.levels) * (order - 1))


# By version number, which saved models record; models without a number have the first.
DESIGNS = {
    1: Design(("share", "peak", "wins", "losses"), ("share", "peak"), 8.0),
    2: Design(("share", "stretch", "changes", "wins", "losses"), ("share",), 1024.0),
    3: Design(("share", "stretch", "changes", "wins", "losses"), ("share", "energy"), 1024.0),
    # a threshold close to silence needs a steep ramp; a count tells a long series from a short one
    4: Design(("share", "stretch", "crossings", "wins", "losses"), ("share", "energy"), 4096.0),
}
NEWEST = max(DESIGNS)

Values = Float[Tensor, "rows time channels"]
Lengths = Int[Tensor, " rows"]


class Calibration(NamedTuple):
    """Scales and thresholds of a block, computed from training data."""

    scale: Float[Tensor, " kernels"]
    threshold: Float[Tensor, " kernels"]
    level_scale: Float[Tensor, "order kernels"]


@dataclass(frozen=True)
class Block:
    """The random parameters of a block, determined by a seed."""

    difference: bool
    channels: Int[Tensor, " chosen"]
    dilation: int
    taps: Float[Tensor, "taps chosen kernels"]
    step: Float[Tensor, " kernels"]
    picks: Int[Tensor, "order kernels"]
    memory: Float[Tensor, " kernels"]
    design: Design = DESIGNS[NEWEST]

    @classmethod
    def draw(cls, seed: int, number: int, n_channels: int, length: float, order: int) -> Block:
        """Draw block `number` for sequences with this number of channels and typical length."""
        rng = np.random.default_rng([seed, number])
        difference, centred = VARIANTS[number % len(VARIANTS)]
        n_taps = max(1, min(TAPS, int(length)))
        widest = max(1.0, (length - 1) / max(1, n_taps - 1))
        channels = rng.permutation(n_channels)[:MOST_CHANNELS]
        taps = rng.standard_normal((n_taps, len(channels), KERNELS))
        if centred and n_taps > 1:
            taps -= taps.mean(axis=0)
        used = np.floor((len(channels) + 1) ** rng.random(KERNELS))
        taps *= rng.random((len(channels), KERNELS)).argsort(axis=0).argsort(axis=0) < used
        return cls(
            difference,
            torch.from_numpy(channels),
            int(widest ** rng.random()),
            torch.from_numpy(taps).float(),
            torch.from_numpy(rng.random(KERNELS)).float(),
            torch.from_numpy(rng.integers(KERNELS, size=(order, KERNELS))),
            torch.from_numpy(2 * max(2.0, length / 2) ** rng.random(KERNELS)).float(),
        )

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.design.n_features(len(self.picks))

    def calibrate(self, x: Values, lengths: Lengths) -> Calibration:
        """Compute scales and thresholds from a sample of the training data."""
        inside = torch.arange(x.shape[1]) < lengths[:, None]
        responses = self.convolve(x, lengths, torch.ones(KERNELS))
        seen = responses[inside]
        scale = root_mean_square(seen)
        threshold = seen[(self.step * len(seen)).long(), torch.arange(KERNELS)] / scale
        unit = torch.ones(len(self.picks), KERNELS)
        levels = self.levels(responses.div_(scale), unit)[inside]
        return Calibration(scale, threshold, root_mean_square(levels).view(-1, KERNELS))

    def features(
        self, x: Values, lengths: Lengths, calibration: Calibration
    ) -> Float[Tensor, "rows features"]:
        """Compute the features of this block."""
        responses = self.convolve(x, lengths, calibration.scale)
        levels = self.levels(responses, calibration.level_scale) if len(self.picks) > 1 else None
        return pools(responses, lengths, calibration.threshold, levels, self.design)

    def convolve(self, x: Values, lengths: Lengths, scale: Tensor) -> Float[Tensor, "rows time kernels"]:
        """Apply dilated convolutions, centred at each step, with zero padding; the result is 0 at padding."""
        n_taps, chosen, _ = self.taps.shape
        reach = self.dilation * (n_taps - 1)
        padded = torch.nn.functional.pad(x[..., self.channels], (0, 0, reach - reach // 2, reach // 2))
        row, step, channel = padded.stride()
        windows = padded.as_strided(
            (len(x), x.shape[1], n_taps, chosen), (row, step, step * self.dilation, channel)
        )
        weight = (self.taps / scale).flatten(0, 1).T.contiguous()
        # The bits of our own matrix product depend neither on the batch nor on threads, those of BLAS may.
        # Sums in float64 leave next to nothing to rounding, in whatever order an exported model adds them up.
        rows = windows.reshape(1, -1, n_taps * chosen).double()
        responses = F.convolve(rows, weight[..., None].double()).float().view(len(x), x.shape[1], -1)
        if int(lengths.min()) < x.shape[1]:
            responses.mul_((torch.arange(x.shape[1]) < lengths[:, None])[..., None])
        return responses

    def levels(
        self, responses: Float[Tensor, "rows time kernels"], scale: Float[Tensor, "order kernels"]
    ) -> Float[Tensor, "rows time order*kernels"]:
        """Compute the levels, divided by their scales, of functionals with decay on the convolutions."""
        weight = torch.nn.functional.one_hot(self.picks, KERNELS).transpose(1, 2).float()
        weight /= (scale / torch.cat([torch.ones(1, KERNELS), scale[:-1]]))[:, None]
        paths = F.ls2t(responses, weight, order=len(scale), decay=torch.exp(-1 / self.memory))
        assert isinstance(paths, Tensor)
        return paths.flatten(2)


def pools(
    responses: Float[Tensor, "rows time width"],
    lengths: Lengths,
    threshold: Float[Tensor, " width"],
    levels: Float[Tensor, "rows time order*width"] | None,
    design: Design,
    pool_path: Callable[..., PathPools] = pool_path,
) -> Float[Tensor, "rows features"]:
    """Pool convolutions and, from level 2 on, the functionals on top of them over time.

    Convolutions that compete with each other are `width / GROUP` columns apart.
    """
    width = responses.shape[2]
    by_name = pool_path(responses, lengths, threshold, design.steepness)._asdict()
    wins, losses = pool_contest(responses, lengths, width // GROUP)
    by_name |= {"wins": wins.clamp_(min=0).sqrt_(), "losses": losses.sqrt_()}
    columns = [_column(name, by_name, responses, lengths) for name in design.convolutions]
    if levels is not None:
        by_name = pool_path(levels, lengths, torch.zeros(levels.shape[2]), design.steepness)._asdict()
        columns += [_column(name, by_name, levels, lengths)[:, width:] for name in design.levels]
    return torch.cat(columns, dim=1)


def _column(name: str, by_name: dict[str, Tensor], path: Values, lengths: Lengths) -> Tensor:
    """Return the pool of this name."""
    if name in by_name:
        return by_name[name]
    if name == "crossings":
        return by_name["changes"] * lengths[:, None]
    inside = torch.arange(path.shape[1]) < lengths[:, None]
    if name == "energy":
        # a matrix product is several times as fast as a masked sum
        squares = (inside.to(path.dtype)[:, None] @ path.square())[:, 0]
        return (squares / lengths[:, None] + SILENCE).log()
    return torch.where(inside[..., None], path, -torch.inf).amax(1)  # "peak", in old models only


def root_mean_square(values: Float[Tensor, "steps kernels"]) -> Float[Tensor, " kernels"]:
    """Return the root mean square over the steps; 1 where it is 0, so that it can be divided by."""
    size = values.square().mean(dim=0).sqrt()
    return torch.where(size > 1e-6, size, 1.0)
