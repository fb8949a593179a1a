"""Batches of sequences with gaps, and the pinball loss of entries that were hidden on purpose."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from seq2tens.data import PackedSteps, Sequences, content_digest, since_start
from seq2tens.models.imputation.hiding import Hide, hidden_entries
from seq2tens.models.imputation.parts import LEVELS, MEDIAN, Entries, GapBatch

# Weight of the causal half, and of the median relative to the other quantiles.
CAUSAL_WEIGHT, MEDIAN_WEIGHT = 0.5, 2.0


class GapSource:
    """Source of sequences of variable length with NaN for missing entries.

    Args:
        sequences: standardised sequences; times and static features are used.
        hidden: mask of the observed entries to predict, packed like the values; None: drawn anew in each
            batch.
        dtype: dtype of the batches.
    """

    def __init__(
        self,
        sequences: Sequences,
        hidden: Bool[np.ndarray, "steps channels"] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        values = torch.tensor(sequences.values, dtype=dtype)
        self.observed = ~values.isnan()
        self.values = torch.where(self.observed, values, 0.0)
        self.times = torch.tensor(since_start(sequences).values, dtype=dtype)
        self.static = None if sequences.static is None else torch.tensor(sequences.static, dtype=dtype)
        self.hidden = None if hidden is None else torch.tensor(hidden)
        self.steps = PackedSteps.of(sequences)
        self.lengths = self.steps.lengths

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, rows: Tensor) -> GapBatch:
        """Return the chosen rows."""
        index = self.steps.padded(rows)
        return GapBatch(
            index.gather(self.values),
            index.gather(self.observed),
            index.gather(self.times)[..., 0].cummax(dim=1).values,
            index.lengths,
            None if self.static is None else self.static[rows],
            None if self.hidden is None else index.gather(self.hidden),
        )

    @cached_property
    def digest(self) -> str:
        """A hash of the contents."""
        return content_digest(self.values, self.observed, self.times, self.static, self.hidden, self.lengths)


class PinballLoss:
    """The mean pinball loss of hidden entries over the levels, of both halves of a `GapFiller`.

    It is minimised by the quantiles; for the median it is half the absolute error.
    """

    def __init__(self, hide: Hide) -> None:
        self.hide = hide

    def __call__(self, model: nn.Module, batch: GapBatch) -> tuple[Tensor, float]:
        """Return the mean over the hidden entries, and their number."""
        hidden = hidden_entries(batch.observed, self.hide) if batch.hidden is None else batch.hidden
        entries, count = some_entries(hidden)
        truth = batch.values[entries]
        filled = model(batch.masked(hidden), entries)
        loss = pinball(filled.both, truth) + CAUSAL_WEIGHT * pinball(filled.past, truth)
        return loss.mean() * min(count, 1), max(count, 1)


def some_entries(hidden: Bool[Tensor, "batch time channels"]) -> tuple[Entries, int]:
    """Return the indices of the hidden entries, and their number.

    If there are none, one entry without weight is returned, since a network needs at least one.
    """
    rows, steps, channels = hidden.nonzero(as_tuple=True)
    if len(rows):
        return (rows, steps, channels), len(rows)
    first = torch.zeros(1, dtype=torch.long, device=hidden.device)
    return (first, first, first), 0


def pinball(
    quantiles: Float[Tensor, "entries levels"], truth: Float[Tensor, " entries"]
) -> Float[Tensor, " entries"]:
    """Return the loss of each entry; the median has a larger weight than the other levels."""
    levels = quantiles.new_tensor(LEVELS)
    weights = quantiles.new_ones(len(LEVELS))
    weights[MEDIAN] = MEDIAN_WEIGHT
    error = truth[:, None] - quantiles
    return (weights * torch.maximum(levels * error, (levels - 1) * error)).sum(-1) / weights.sum()
