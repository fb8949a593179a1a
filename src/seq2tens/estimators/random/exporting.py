"""Linear models on random features as modules that can be exported, with all blocks side by side.

With n blocks, convolution k of block b is column k · n + b, so competing convolutions are equally spaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as torch_F

from seq2tens.estimators.random.blocks import Block, pools, relative
from seq2tens.estimators.random.ridge import Ridge
from seq2tens.exporting import Standardization, scan

if TYPE_CHECKING:
    from seq2tens.estimators.random.features import RandomLS2TFeatures

Values = Float[Tensor, "batch time channels"]
Lengths = Int[Tensor, " batch"]
Paths = Float[Tensor, "batch time width"]


class RandomFeaturesModule(nn.Module):
    """Fitted `RandomLS2TFeatures` as a module on prepared values."""

    threshold: Tensor
    ratio: Tensor
    picks: Tensor
    decay: Tensor

    def __init__(self, features: RandomLS2TFeatures) -> None:
        super().__init__()
        self.blocks, n = features.blocks_, len(features.blocks_)
        self.increments = Standardization(features.increments_)
        scale, threshold, level_scale = (
            torch.stack(parts, dim=-1) for parts in zip(*features.calibrations_, strict=True)
        )
        self.scales = scale.unbind(-1)
        self.register_buffer("threshold", threshold.flatten())
        self.register_buffer("ratio", relative(level_scale).flatten(1))
        picks = torch.stack([block.picks for block in self.blocks], dim=-1)
        self.register_buffer("picks", (picks * n + torch.arange(n)).flatten(1))
        memory = torch.stack([block.memory for block in self.blocks], dim=-1).flatten()
        levels = torch.arange(1, len(picks) + 1)[:, None]
        self.register_buffer("decay", torch.exp(-1 / memory).double() ** levels)

    def forward(self, values: Values, lengths: Lengths) -> Float[Tensor, "batch features"]:
        """Return the features in the order of `RandomLS2TFeatures.transform`."""
        mask = (torch.arange(values.shape[1]) < lengths[:, None])[..., None]
        before = torch.cat([values[:, :1], values], dim=1)[:, :-1]
        change = self.increments(values - before).float()
        paths = (values, torch.where(mask, change, 0.0))
        responses = torch.stack(
            [
                _convolve(block, paths[block.difference], s)
                for block, s in zip(self.blocks, self.scales, strict=True)
            ],
            dim=-1,
        ).flatten(2)
        responses = torch.where(mask, responses, 0.0)
        levels = self._levels(responses)
        table = pools(responses, lengths, self.threshold, levels, self.blocks[0].design, _pool_path)
        return table.unflatten(1, (-1, len(self.blocks))).mT.flatten(1)

    def _levels(self, responses: Paths) -> Float[Tensor, "batch time order width"]:
        """Compute the levels: level m decays by the m-th power of the decay, and grows by level m - 1."""
        factors = torch.stack(
            [responses[..., pick] / ratio for pick, ratio in zip(self.picks, self.ratio, strict=True)], dim=2
        )

        def step(state: Tensor, factors: Tensor, decay: Tensor) -> tuple[Tensor, Tensor]:
            faded = state * decay
            below = torch.cat([torch.ones_like(faded[:, :1]), faded[:, :-1]], dim=1)
            state = faded + below * factors
            return state, state.float()

        initial = torch.zeros(factors[:, 0].shape, dtype=torch.float64)
        return scan(step, initial, [factors], [self.decay])[1]


class RidgeModule(nn.Module):
    """Scores of a linear model on random features."""

    def __init__(self, features: RandomLS2TFeatures, ridge: Ridge) -> None:
        super().__init__()
        self.features, self.ridge = RandomFeaturesModule(features), ridge

    def forward(self, values: Values, lengths: Lengths) -> Float[Tensor, "batch targets"]:
        """Return the scores, one column for each target."""
        return self.ridge(self.features(values, lengths))


class ValueModule(nn.Module):
    """Predictions of a linear model, converted from standardised ones to the units of the targets."""

    def __init__(
        self, scores: RidgeModule, level: Float[np.ndarray, " targets"], spread: Float[np.ndarray, " targets"]
    ) -> None:
        super().__init__()
        self.scores, self.level, self.spread = scores, torch.from_numpy(level), torch.from_numpy(spread)

    def forward(self, values: Values, lengths: Lengths) -> Float[Tensor, "batch ..."]:
        """Return predictions in float64, without the axis of targets if there is one."""
        numbers = self.level + self.spread * self.scores(values, lengths).double()
        return numbers if len(self.level) > 1 else numbers[:, 0]


def _pool_path(path: Paths, lengths: Lengths, threshold: Tensor, steepness: float) -> tuple[Tensor, ...]:
    """Compute `ops.pooling.pool_path` by `scan`, so that the exported graph takes any number of steps."""
    inside = (torch.arange(path.shape[1]) < lengths[:, None])[..., None]
    ramp = torch.where(inside, ((path - threshold) * steepness + 0.5).clamp(0, 1), 0.0)
    before = torch.cat([ramp[:, :1], ramp], dim=1)[:, :-1]
    change = torch.where(inside, (ramp - before).abs(), 0.0)

    def step(state: Tensor, ramp: Tensor) -> tuple[Tensor, Tensor]:
        run = (state[:, 0] + 1) * ramp
        longest = torch.maximum(state[:, 1], run)
        return torch.stack([run, longest], dim=1), run

    longest = scan(step, torch.zeros_like(ramp[:, :1]).repeat(1, 2, 1), [ramp], [])[0][:, 1]
    return tuple(total / lengths[:, None] for total in (ramp.sum(1), longest, change.sum(1)))


def _convolve(block: Block, x: Values, scale: Tensor) -> Float[Tensor, "batch time kernels"]:
    """Compute `Block.convolve` by operations that ONNX runtimes support for float64."""
    reach = block.dilation * (len(block.taps) - 1)
    padded = torch_F.pad(x[..., block.channels], (0, 0, reach - reach // 2, reach // 2)).double()
    steps = padded.shape[1] - reach
    taps = (block.taps / scale).double()
    terms = (padded[:, k * block.dilation : k * block.dilation + steps] @ tap for k, tap in enumerate(taps))
    return sum(terms, torch.zeros((), dtype=torch.float64)).float()
