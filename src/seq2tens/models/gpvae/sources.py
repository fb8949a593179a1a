"""Batches of sequences with missing entries."""

from __future__ import annotations

from collections.abc import Sized
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2tens.data import Incomplete, Sequences
from seq2tens.data.batches import PackedSteps, content_digest


class IncompleteBatch(NamedTuple):
    """Sequences with 0 where nothing was observed; `lengths` is None if there is no padding.

    For scores `truth` has more entries than were observed, those that are `hidden` among them; otherwise both
    are None.
    """

    values: Float[Tensor, "rows time channels"]
    observed: Bool[Tensor, "rows time channels"]
    lengths: Int[Tensor, " rows"] | None = None
    truth: Float[Tensor, "rows time channels"] | None = None
    hidden: Bool[Tensor, "rows time channels"] | None = None


@runtime_checkable
class Part(Sized, Protocol):
    """`Incomplete`, or data that becomes it a few rows at a time."""

    def __getitem__(self, rows: np.ndarray, /) -> Incomplete: ...


class IncompleteSource:
    """Sequences of one length, made when they are asked for.

    Args:
        part: `Incomplete`, or anything that gives it for some rows, such as `TurningDigits`.
        scored: batches have what is needed to score an imputation.
    """

    def __init__(self, part: Part, *, scored: bool = False) -> None:
        self.part, self.scored = part, scored

    def __len__(self) -> int:
        return len(self.part)

    def batch(self, rows: Tensor) -> IncompleteBatch:
        """The chosen rows."""
        chosen = self.part[rows.numpy()]
        values, observed = torch.from_numpy(chosen.values), torch.from_numpy(chosen.observed)
        if not self.scored:
            return IncompleteBatch(values, observed)
        hidden = chosen.hidden
        truth = np.where(hidden, chosen.truth, np.float32(0))
        return IncompleteBatch(values, observed, None, torch.from_numpy(truth), torch.from_numpy(hidden))


class RaggedSource:
    """Sequences of unequal length with NaN where nothing was observed."""

    def __init__(self, sequences: Sequences) -> None:
        values = torch.tensor(sequences.values, dtype=torch.float32)
        self.observed = ~values.isnan()
        self.values = torch.where(self.observed, values, 0.0)
        self.steps = PackedSteps.of(sequences)
        self.lengths = self.steps.lengths

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, rows: Tensor) -> IncompleteBatch:
        """The chosen rows."""
        index = self.steps.padded(rows)
        return IncompleteBatch(index.gather(self.values), index.gather(self.observed), index.lengths)

    @cached_property
    def digest(self) -> str:
        """A hash of all there is."""
        return content_digest(self.values, self.observed, self.lengths)
