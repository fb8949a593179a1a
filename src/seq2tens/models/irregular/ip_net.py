"""Interpolation-prediction network: channels are interpolated at common times, then read by a GRU."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from typing_extensions import Unpack

from seq2tens import _checks as check
from seq2tens import functional as F
from seq2tens.data import Batch
from seq2tens.models.irregular.network import IrregularNetwork, Shared, StaticState
from seq2tens.models.irregular.readings import Observations, Readings
from seq2tens.models.irregular.recurrent import DropoutGRU
from seq2tens.models.irregular.segments import segment_exp, segment_sum

# From the paper: how much sharper the kernel of the transient component is, and the fraction of the
# observations that is hidden and reconstructed.
TRANSIENT_RATIO = 10.0
HIDDEN = 0.2

Points = Float[Tensor, "batch points"]
OnPoints = Float[Tensor, "batch points channels"]


class Interpolation(nn.Module):
    """Interpolation of the observations of each channel at given times by kernels exp(-a (r - t)²).

    The smooth interpolant is a kernel-weighted mean per channel, mixed over channels in proportion to their
    intensities (sums of kernels) by a learned matrix. The transient one is the difference between it and the
    mean with a sharper kernel. Every observation is paired only with the points of its own sequence, so the
    cost grows with the number of observations, not with channels × steps.
    """

    def __init__(self, n_channels: int, unit: float) -> None:
        super().__init__()
        self.unit = unit
        self.log_sharpness = nn.Parameter(torch.zeros(n_channels))
        self.mixing = nn.Parameter(torch.eye(n_channels))

    def forward(self, observations: Observations, points: Points) -> tuple[OnPoints, OnPoints, OnPoints]:
        """Return the smooth interpolant, the transient one and the intensity at each point."""
        distances = ((points[observations.rows] - observations.times[:, None]) / self.unit) ** 2
        sharpness = self.log_sharpness.exp()[observations.channels, None]
        wide, intensity = self._weighted_mean(observations, -sharpness * distances, len(points))
        narrow, _ = self._weighted_mean(observations, -TRANSIENT_RATIO * sharpness * distances, len(points))
        # Far from all observations every intensity underflows; the quotient is then 0.
        share = intensity / intensity.sum(-1, keepdim=True).clamp(min=torch.finfo(wide.dtype).tiny)
        smooth = (share * wide) @ self.mixing
        return smooth, narrow - smooth, intensity

    def _weighted_mean(
        self, observations: Observations, exponents: Float[Tensor, "observations points"], n_rows: int
    ) -> tuple[OnPoints, OnPoints]:
        """Return, for each channel, the mean weighted by exponentials, and the sum of the weights."""
        n_channels = len(self.log_sharpness)
        groups, n_groups = observations.rows * n_channels + observations.channels, n_rows * n_channels
        weights, top = segment_exp(exponents, groups, n_groups)
        total = segment_sum(weights, groups, n_groups)
        # The largest weight of a group is 1, so only an empty group has a total below 1.
        mean = segment_sum(weights * observations.values[:, None], groups, n_groups) / total.clamp(min=1)
        per_channel = (
            each.view(n_rows, n_channels, -1).transpose(1, 2) for each in (mean, total * top.exp())
        )
        return tuple(per_channel)  # type: ignore[return-value]


class IPNet(IrregularNetwork):
    """Interpolation to reference points, then a gated recurrent network.

    Shukla and Marlin, "Interpolation-prediction networks for irregularly sampled time series" (2019). Static
    features determine the initial state. In training, some of the observations are hidden and reconstructed
    by the smooth interpolant of the others: `auxiliary_loss`.

    Args:
        n_references: number of reference points, evenly spaced from 0 to `horizon`.
        auxiliary_weight: weight of the reconstruction loss.
        input_dropout: see `DropoutGRU`.
        recurrent_dropout: see `DropoutGRU`.

    The other arguments are those of every `IrregularNetwork`.
    """

    def __init__(
        self,
        n_channels: int,
        n_static: int = 0,
        n_classes: int = 2,
        *,
        n_references: int = 49,
        auxiliary_weight: float = 1.0,
        input_dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(n_channels, n_static, n_classes, **shared)
        check.require(n_references > 1, f"`n_references` must be at least 2, got {n_references}")
        self.auxiliary_weight = auxiliary_weight
        self.references: Tensor
        self.register_buffer("references", torch.linspace(0, self.horizon, n_references), persistent=False)
        self.interpolation = Interpolation(n_channels, unit=self.horizon / (n_references - 1))
        self.initial = StaticState(n_static, self.width)
        self.recurrent = DropoutGRU(3 * n_channels, self.width, input_dropout, recurrent_dropout)

    def summarize(self, readings: Readings) -> Float[Tensor, "batch width"]:
        """Return the state at the last reference point."""
        points = self.references.to(readings.values).expand(len(readings.values), -1)
        rows = torch.cat(self.interpolation(readings.observations(), points), dim=-1)
        return self.recurrent(rows, self.initial(readings.static))[:, -1]

    def auxiliary_loss(self, batch: Batch) -> Float[Tensor, ""]:
        """Return the mean squared error at hidden observations, times its weight."""
        readings = self.read(batch)
        hidden = readings.observed & (torch.rand_like(readings.values) < HIDDEN)
        observations = readings._replace(observed=readings.observed & ~hidden).observations()
        smooth, _, _ = self.interpolation(observations, readings.times)
        errors = (smooth - readings.values).square()
        return self.auxiliary_weight * F.masked_mean(errors, hidden, dim=(0, 1, 2))
