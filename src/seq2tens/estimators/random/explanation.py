"""Description of random features: their channels, lags, and the steps of a sequence that make them large."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from seq2tens import _checks as check
from seq2tens.data import Sequences
from seq2tens.estimators.random.blocks import KERNELS, Block, BlockStatistics, Design
from seq2tens.estimators.random.features import RandomLS2TFeatures


@dataclass(frozen=True)
class Filter:
    """A convolution: at step i it reads its channels, or their increments, at the steps i + lag."""

    channels: tuple[str, ...]
    lags: tuple[int, ...]
    weights: Float[np.ndarray, "lags channels"]
    increments: bool

    @property
    def strongest(self) -> tuple[str, int]:
        """Channel and lag with the largest weight."""
        lag, channel = np.unravel_index(np.abs(self.weights).argmax(), self.weights.shape)
        return self.channels[channel], self.lags[lag]


@dataclass(frozen=True)
class Explanation:
    """One feature: a path, either a convolution or level m of m convolutions in order, and its pool.

    `pool` is "share" (of steps above a threshold), "stretch" (the longest above it), "crossings" (how often
    it is crossed), "energy" (logarithm of the mean square), "wins" or "losses" (against other convolutions);
    older models also have "changes" (crossings per step) and "peak" (the maximum). `coefficients` has one
    number per class, or one in regression, for a feature of variance 1. `memory` is the number of steps after
    which a factor has decayed to 1/e, None at level 1. `steps[i]` are the steps of sequence i that add most
    to the largest value of the path.
    """

    column: int
    coefficients: Float[np.ndarray, " targets"]
    pool: str
    filters: tuple[Filter, ...]
    memory: float | None
    steps: Int[np.ndarray, "sequences level"] | None

    @property
    def level(self) -> int:
        """Number of steps that one term combines."""
        return len(self.filters)

    def __str__(self) -> str:
        filters = " then ".join(
            f"channel {c} at lag {lag:+d}" for c, lag in (f.strongest for f in self.filters)
        )
        memory = "" if self.memory is None else f", within about {self.memory:.0f} steps"
        return f"{self.pool} of level {self.level}: {filters}{memory}"


def describe_features(
    features: RandomLS2TFeatures,
    coefficients: Tensor,
    sequences: Sequences | None,
    top: int,
    variables: Sequence[str] = (),
) -> list[Explanation]:
    """Describe the features with the largest coefficients, largest first.

    `variables` are the names of the channels and static features. With `sequences`, the steps that a feature
    uses are found in each of them.
    """
    check.positive_int("top", top)
    largest = coefficients.abs().amax(dim=1).argsort(descending=True)[:top]
    names = features.preparation_.names(variables)
    prepared = None if sequences is None else features.preparation_.transform(sequences)
    paths = None if prepared is None else features._paths(prepared)
    rows = []
    for column in map(int, largest):
        number, inside = divmod(column, features.blocks_[0].n_features)
        block = features.blocks_[number]
        part, kernel = divmod(inside, KERNELS)
        pool, level = _pool_and_level(part, features.order, block.design)
        chain = [kernel] if level == 1 else block.picks[:level, kernel].tolist()
        memory = None if level == 1 else float(block.memory[kernel])
        steps = None
        if paths is not None:
            x, lengths = paths[block.difference]
            responses = block.convolve(x, lengths, features.calibrations_[number].scale)[..., chain]
            steps = np.array([decisive_steps(r[:n], memory) for r, n in zip(responses, lengths, strict=True)])
        filters = tuple(_filter(block, k, features.calibrations_[number], names) for k in chain)
        rows.append(Explanation(column, coefficients[column].numpy(), pool, filters, memory, steps))
    return rows


def _pool_and_level(part: int, order: int, design: Design) -> tuple[str, int]:
    """Return pool and level of a group of columns: those of level 1 come first, then the higher levels."""
    if part < len(design.convolutions):
        return design.convolutions[part], 1
    pool, offset = divmod(part - len(design.convolutions), order - 1)
    return design.levels[pool], 2 + offset


def decisive_steps(responses: Float[Tensor, "time level"], memory: float | None) -> list[int]:
    """Return the steps i_1 < … < i_m with the largest term in the sum that is the maximum of the path.

    At step t, the factor of step i has decayed by exp(-(t - i) / memory).
    """
    values = responses.double().numpy()
    if memory is None:
        return [int(values[:, 0].argmax())]
    end = int(_path(values, memory).argmax())
    faded = values[: end + 1] * np.exp(-(end - np.arange(end + 1)) / memory)[:, None]
    return _largest_product(faded)


def _path(values: Float[np.ndarray, "time level"], memory: float) -> Float[np.ndarray, " time"]:
    """Return the value of the level at every step."""
    fade = math.exp(-1 / memory)
    state, path = np.zeros(values.shape[1] + 1), np.empty(len(values))
    state[0] = 1
    for t, value in enumerate(values):
        powers = fade ** np.arange(len(state))
        state[1:] = powers[1:] * state[1:] + powers[:-1] * state[:-1] * value
        path[t] = state[-1]
    return path


def _largest_product(factors: Float[np.ndarray, "time level"]) -> list[int]:
    """Return increasing steps, one per column, with the largest product; -1 if there are too few steps."""
    length, level = factors.shape
    if length < level:
        return [-1] * level
    # the smallest and largest product of the first m columns at steps before t, each with its steps
    extremes: list[list[tuple[float, list[int]]]] = [[(1.0, [])], *([] for _ in range(level))]
    for t in range(length):
        for m in range(level, 0, -1):
            new = [(product * factors[t, m - 1], [*steps, t]) for product, steps in extremes[m - 1]]
            known = sorted(extremes[m] + new, key=lambda item: item[0])
            extremes[m] = [known[0], known[-1]] if known else []
    return extremes[level][-1][1]


def _filter(block: Block, kernel: int, calibration: BlockStatistics, names: Sequence[str]) -> Filter:
    taps = (block.taps[..., kernel] / calibration.scale[kernel]).numpy()
    used = np.flatnonzero(np.abs(taps).sum(axis=0))
    reach = block.dilation * (len(taps) - 1)
    lags = block.dilation * np.arange(len(taps)) - (reach - reach // 2)
    channels = tuple(names[int(block.channels[c])] for c in used)
    return Filter(channels, tuple(lags.tolist()), taps[:, used], block.difference)
