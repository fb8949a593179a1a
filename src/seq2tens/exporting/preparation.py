"""`data.Preparation` in operations of torch, for padded batches: scaling and filling inside the graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seq2tens.data import Preparation, Scaler
from seq2tens.exporting.recursion import scan

Values = Float[Tensor, "batch time channels"]


class Padded(NamedTuple):
    """Channels without missing values in float32, and the mask of valid steps; other steps are 0."""

    values: Values
    mask: Bool[Tensor, "batch time"]


class PreparationModule(nn.Module):
    """A fitted `Preparation` as a module, for batches in float64, padded on the right."""

    known: Tensor
    fill: Tensor

    def __init__(self, preparation: Preparation) -> None:
        super().__init__()
        self.scaling, self.missing = preparation.scaling, preparation.mask
        self.since_observed = preparation.since is not None
        self.register_buffer("known", torch.from_numpy(preparation.known))
        self.register_buffer("fill", torch.from_numpy(preparation.fill))
        self.scaler, self.since, self.clock, self.static = map(
            _standardization, (preparation.scaler, preparation.since, preparation.clock, preparation.static)
        )

    def forward(
        self,
        values: Values,
        lengths: Int[Tensor, " batch"],
        times: Float[Tensor, "batch time"] | None = None,
        static: Float[Tensor, "batch features"] | None = None,
    ) -> Padded:
        """Return the channels of `Preparation.transform`; NaN marks a missing entry, padding is ignored."""
        mask = torch.arange(values.shape[1], device=values.device) < lengths[:, None]
        observed = ~values.isnan() & self.known & mask[..., None]
        scaled = self._scaled(torch.where(observed, values, 0.0), observed).float()
        parts = [last_observed(scaled, observed, self.fill.float().expand_as(scaled[:, 0]))]
        if self.missing:
            parts.append(observed.float())
        if times is None:
            times = torch.arange(values.shape[1], device=values.device).expand(mask.shape).to(values.dtype)
        if self.since is not None:
            parts.append(self.since(_since(times, observed)).float())
        if self.clock is not None:
            parts.append(self.clock((times - times[:, :1])[..., None]).float())
        if self.static is not None and static is not None:
            rows = torch.where(static.isnan(), 0.0, self.static(static)).float()
            parts.append(rows[:, None].expand(-1, values.shape[1], -1))
        return Padded(torch.where(mask[..., None], torch.cat(parts, dim=2), 0.0), mask)

    def _scaled(self, values: Values, observed: Bool[Tensor, "batch time channels"]) -> Values:
        if self.scaling == "sequence":
            return _by_sequence(values, observed)
        return values if self.scaler is None else self.scaler(values)


class Standardization(nn.Module):
    """The standardisation of each channel, in float64."""

    mean: Tensor
    scale: Tensor

    def __init__(self, scaler: Scaler) -> None:
        super().__init__()
        assert scaler.mean_ is not None
        assert scaler.scale_ is not None
        self.register_buffer("mean", torch.from_numpy(np.asarray(scaler.mean_, dtype=np.float64)))
        self.register_buffer("scale", torch.from_numpy(np.asarray(scaler.scale_, dtype=np.float64)))

    def forward(self, values: Float[Tensor, "*rows channels"]) -> Float[Tensor, "*rows channels"]:
        """Subtract the mean and divide by the scale."""
        return (values.double() - self.mean) / self.scale


def last_observed(
    values: Values, observed: Bool[Tensor, "batch time channels"], initial: Float[Tensor, "batch channels"]
) -> Values:
    """Return the last observed value at each step, `initial` before the first one.

    `functional.forward_fill` has a loop that depends on the number of steps, which an exported graph has not.
    """

    def step(last: Tensor, value: Tensor, observed: Tensor) -> tuple[Tensor, Tensor]:
        last = torch.where(observed, value, last)
        return last, last.clone()

    return scan(step, initial.contiguous(), [values, observed])[1]


def _since(times: Float[Tensor, "batch time"], observed: Bool[Tensor, "batch time channels"]) -> Values:
    """Return the time since each channel's last observation before a step, or since the first step."""
    clocks = times[..., None].expand(observed.shape)
    last = last_observed(clocks, observed, clocks[:, 0])
    return clocks - torch.cat([clocks[:, :1], last], dim=1)[:, :-1]


def _by_sequence(values: Values, observed: Bool[Tensor, "batch time channels"]) -> Values:
    """Standardise with the statistics of each sequence, like `Scaler`."""
    count = observed.sum(1, keepdim=True).clamp(min=1)
    mean = values.sum(1, keepdim=True) / count
    deviation = torch.where(observed, values - mean, 0.0)
    scale = (deviation.square().sum(1, keepdim=True) / count).sqrt()
    low = torch.where(observed, values, torch.inf).amin(1, keepdim=True)
    high = torch.where(observed, values, -torch.inf).amax(1, keepdim=True)
    return (values - mean) / torch.where((low >= high) | (scale == 0), 1.0, scale)


def _standardization(scaler: Scaler | None) -> Standardization | None:
    """Return the module of a scaler; None if there is none, or if it scales by sequence."""
    return None if scaler is None or scaler.mean_ is None else Standardization(scaler)
