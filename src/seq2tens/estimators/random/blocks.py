"""One block of random features: pooled convolutions, and pooled functionals of their order in time.

A block is drawn from a seed, then calibrated: its convolutions and functionals are divided by their root
mean square over a sample of the training sequences, and its thresholds are values that occur there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2tens import functional as F
from seq2tens.ops.pooling import (
    POOLS,
    Blocks,
    Comparison,
    functionals,
    inside,
    pool_blocks,
    pool_path,
    pool_paths,
)

KERNELS = 32  # convolutions of a block, and functionals of each level
GROUP = 8  # number of convolutions that compete with each other
MOST_CHANNELS = 16  # largest number of channels that a block reads
TAPS = 7
SILENT_ENERGY = 1e-4  # energy below which a path, of mean square 1 in training, counts as silent
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


class BlockStatistics(NamedTuple):
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
        difference, centered = VARIANTS[number % len(VARIANTS)]
        n_taps = max(1, min(TAPS, int(length)))
        widest = max(1.0, (length - 1) / max(1, n_taps - 1))
        channels = rng.permutation(n_channels)[:MOST_CHANNELS]
        taps = rng.standard_normal((n_taps, len(channels), KERNELS))
        if centered and n_taps > 1:
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
    def decay(self) -> Float[Tensor, " kernels"]:
        """What is left of a level after a step; level m decays by the m-th power."""
        return torch.exp(-1 / self.memory)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.design.n_features(len(self.picks))

    def calibrate(self, x: Values, lengths: Lengths) -> BlockStatistics:
        """Compute scale and threshold of the convolutions from a sample of the training data."""
        responses = self.convolve(x, lengths, torch.ones(KERNELS))
        seen = torch.cat([row[:length] for row, length in zip(responses, lengths.tolist(), strict=True)])
        size = root_of(seen.square().mean(dim=0))
        step = (self.step * len(seen)).long().clamp(max=len(seen) - 1)  # a step may be rounded to 1
        threshold = seen[step, torch.arange(KERNELS)] / size
        return BlockStatistics(size, threshold, torch.ones(len(self.picks), KERNELS))

    def features(
        self, x: Values, lengths: Lengths, calibration: BlockStatistics
    ) -> Float[Tensor, "rows features"]:
        """Compute the features of this block from its paths."""
        responses = self.convolve(x, lengths, calibration.scale)
        gains = 1 / relative(calibration.level_scale)
        levels = functionals(responses, self.picks, gains, self.decay)
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


def stack(blocks: Sequence[Block], calibrations: Sequence[BlockStatistics]) -> Blocks:
    """Return all blocks for `pool_blocks`, where path 0 holds values and path 1 increments."""
    rows = (
        (
            torch.tensor(int(block.difference)),
            block.channels,
            torch.tensor(block.dilation),
            block.taps / calibration.scale,
            block.picks,
            1 / relative(calibration.level_scale),
            block.decay,
            calibration.threshold,
        )
        for block, calibration in zip(blocks, calibrations, strict=True)
    )
    return Blocks(*map(torch.stack, zip(*rows, strict=True)))


def relative(scale: Float[Tensor, "order ..."]) -> Float[Tensor, "order ..."]:
    """Return the scales relative to the level below, which enters a level already divided by its own."""
    return scale / torch.cat([torch.ones_like(scale[:1]), scale[:-1]])


def calibrate_levels(
    x: Float[Tensor, "sources rows time channels"], lengths: Lengths, blocks: Blocks
) -> Float[Tensor, "blocks order kernels"]:
    """Return the root mean squares of all levels of blocks whose levels have scale 1."""
    energy = pool_blocks(x, lengths, blocks, KERNELS // GROUP, 1.0)[:, :, -blocks.picks.shape[1] :]
    weight = lengths.double() / lengths.sum()
    return root_of(torch.einsum("r,r...->...", weight, energy.double())).float()


def pools(
    responses: Float[Tensor, "rows time width"],
    lengths: Lengths,
    threshold: Float[Tensor, " width"],
    levels: Float[Tensor, "rows time order width"],
    design: Design,
    pool_path: Callable[..., tuple[Tensor, ...]] = pool_path,
) -> Float[Tensor, "rows features"]:
    """Pool convolutions and, from level 2 on, the functionals on top of them over time.

    Convolutions that compete with each other are `width / GROUP` columns apart.
    """
    comparison = Comparison(threshold, responses.shape[2] // GROUP, design.steepness)
    pooled = pool_paths(responses, levels, lengths, comparison, pool_path)
    peaks = [_peaks(path, lengths)[:, None] for path in (responses[:, :, None], levels[:, :, 1:])]
    return select(pooled[:, None], lengths, design, *peaks)


def _peaks(
    path: Float[Tensor, "rows time levels width"], lengths: Lengths
) -> Float[Tensor, "rows levels width"]:
    """Return the maximum over time, which old designs have."""
    return torch.where(inside(path, lengths)[..., None], path, -torch.inf).amax(1)


def select(
    pooled: Float[Tensor, "rows blocks pools width"], lengths: Lengths, design: Design, *peaks: Tensor
) -> Float[Tensor, "rows features"]:
    """Return the features of a design, block by block; `peaks` are those of convolutions and of levels."""
    above = (pooled.shape[2] - len(POOLS)) // 2  # the number of levels from 2 on
    *separate, share, _, energy = pooled.split([1] * len(POOLS) + [above, 1, above], dim=2)
    first = dict(zip(POOLS, separate, strict=True))
    first["crossings"] = first["changes"] * lengths[:, None, None, None]
    first["wins"], first["losses"] = first["wins"].clamp(min=0).sqrt(), first["losses"].sqrt()
    levels = {"share": share, "energy": (energy + SILENT_ENERGY).log()}
    if peaks:
        first["peak"], levels["peak"] = peaks
    columns = [first[name] for name in design.convolutions] + [levels[name] for name in design.levels]
    return torch.cat(columns, dim=2).flatten(1)


def root_of(square: Float[Tensor, "*rest"]) -> Float[Tensor, "*rest"]:
    """Return the root of a mean square; 1 where it is 0, so that it can be divided by."""
    size = square.sqrt()
    return torch.where(size > 1e-6, size, 1.0)
