"""Batches of sequences with missing entries."""

from __future__ import annotations

from collections.abc import Sized
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2tens.data import Incomplete, PackedSteps, Sequences, content_digest


class IncompleteBatch(NamedTuple):
    """Sequences with 0 for entries that were not observed; `lengths` is None if there is no padding.

    For scoring, `truth` holds the values of the `hidden` entries; otherwise both are None.
    """

    values: Float[Tensor, "rows time channels"]
    observed: Bool[Tensor, "rows time channels"]
    lengths: Int[Tensor, " rows"] | None = None
    truth: Float[Tensor, "rows time channels"] | None = None
    hidden: Bool[Tensor, "rows time channels"] | None = None


@runtime_checkable
class Part(Sized, Protocol):
    """`Incomplete` data, or data that return it for some rows."""

    def __getitem__(self, rows: np.ndarray, /) -> Incomplete: ...


class IncompleteSource:
    """Source of sequences of equal length, created on demand.

    Args:
        part: `Incomplete`, or anything that returns it for some rows, such as `TurningDigits`.
        scored: whether batches hold the truth, to score an imputation.
    """

    def __init__(self, part: Part, *, scored: bool = False) -> None:
        self.part, self.scored = part, scored

    def __len__(self) -> int:
        return len(self.part)

    def batch(self, rows: Tensor) -> IncompleteBatch:
        """Return the chosen rows."""
        chosen = self.part[rows.numpy()]
        values, observed = torch.from_numpy(chosen.values), torch.from_numpy(chosen.observed)
        if not self.scored:
            return IncompleteBatch(values, observed)
        hidden = chosen.hidden
        truth = np.where(hidden, chosen.truth, np.float32(0))
        return IncompleteBatch(values, observed, None, torch.from_numpy(truth), torch.from_numpy(hidden))


class RaggedSource:
    """Source of sequences of unequal length with NaN for missing entries."""

    def __init__(self, sequences: Sequences) -> None:
        values = torch.tensor(sequences.values, dtype=torch.float32)
        self.observed = ~values.isnan()
        self.values = torch.where(self.observed, values, 0.0)
        self.steps = PackedSteps.of(sequences)
        self.lengths = self.steps.lengths

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, rows: Tensor) -> IncompleteBatch:
        """Return the chosen rows."""
        index = self.steps.padded(rows)
        return IncompleteBatch(index.gather(self.values), index.gather(self.observed), index.lengths)

    @cached_property
    def digest(self) -> str:
        """A hash of the contents."""
        return content_digest(self.values, self.observed, self.lengths)
