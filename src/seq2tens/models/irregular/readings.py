"""A batch as the networks read it, and the quantities that several of them share."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2tens import _checks as check
from seq2tens import functional as F
from seq2tens.data import Batch

# Value of an entry that was not observed: the channel's last value, or its mean.
Fill = Literal["last", "zero"]


class Observations(NamedTuple):
    """All observed entries of a batch as a list, without padding."""

    rows: Int[Tensor, " observations"]
    channels: Int[Tensor, " observations"]
    times: Float[Tensor, " observations"]
    values: Float[Tensor, " observations"]


class Readings(NamedTuple):
    """A batch with all optional fields filled in; missing entries and padding are 0.

    With standardised channels, 0 is the mean of the training set.
    """

    values: Float[Tensor, "batch time channels"]
    observed: Bool[Tensor, "batch time channels"]
    times: Float[Tensor, "batch time"]
    inside: Bool[Tensor, "batch time"]
    static: Float[Tensor, "batch features"]

    @property
    def mask(self) -> Float[Tensor, "batch time channels"]:
        """`observed` as numbers."""
        return self.observed.to(self.values)

    def filled(self, fill: Fill = "last") -> Float[Tensor, "batch time channels"]:
        """Return the last value of each channel, 0 before the first; or 0 for all missing entries."""
        return F.forward_fill(self.values, observed=self.observed) if fill == "last" else self.values

    def gaps(self) -> Float[Tensor, "batch time channels"]:
        """Return the time since each channel was last observed before this step, or since the first step."""
        times = self.times[..., None].expand_as(self.values)
        observed = self.observed.clone()
        observed[:, 0] = True
        last = F.forward_fill(times, observed=observed)
        before = torch.cat([last[:, :1], last[:, :-1]], dim=1)
        return torch.where(self.inside[..., None], times - before, 0.0)

    def observations(self) -> Observations:
        """Return the observed entries as a list."""
        rows, steps, channels = self.observed.nonzero(as_tuple=True)
        return Observations(rows, channels, self.times[rows, steps], self.values[rows, steps, channels])

    def last(self, states: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch width"]:
        """Return the state at the end of each sequence."""
        end = (self.inside.sum(1) - 1).clamp(min=0)
        return states[torch.arange(len(states), device=states.device), end]


def read(batch: Batch, n_channels: int, n_static: int) -> Readings:
    """Check a batch and fill in optional fields; without times, steps are one unit apart."""
    check.sequences("batch.values", batch.values)
    check.not_empty("batch.values", batch.values)
    rows, steps, _ = batch.values.shape
    check.shape("batch.values", batch.values, (rows, steps, n_channels), "(batch, time, channels)")
    inside = batch.mask
    observed = inside[..., None] if batch.observed is None else batch.observed & inside[..., None]
    observed = observed.expand_as(batch.values)
    times = torch.arange(steps, device=inside.device).expand(rows, -1) if batch.times is None else batch.times
    return Readings(
        torch.where(observed, batch.values, 0.0),
        observed,
        torch.where(inside, times.to(batch.values), 0.0),
        inside,
        _static(batch, n_static),
    )


def _static(batch: Batch, n_static: int) -> Float[Tensor, "batch features"]:
    rows = len(batch.values)
    if batch.static is None:
        check.require(n_static == 0, f"`batch.static` must have {n_static} features, got none")
        return batch.values.new_zeros(rows, 0)
    check.shape("batch.static", batch.static, (rows, n_static), "(batch, features)")
    return batch.static.nan_to_num(nan=0.0).to(batch.values)
