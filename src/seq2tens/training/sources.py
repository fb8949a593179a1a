"""Sources of batches."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2tens._checks import require
from seq2tens.data import PackedSteps, Sequences, content_digest


class Source(Protocol):
    """The interface of data for the training loop: a length, and batches of given rows.

    Sampling uses two optional attributes with one entry per row: `labels` for balanced batches, `lengths` for
    buckets. With an optional `digest` of the data, resuming from a checkpoint detects other data.
    """

    def __len__(self) -> int: ...

    def batch(self, rows: Tensor) -> Any:
        """Return these rows as tensors, or as tuples, lists and dicts of tensors."""
        ...


class TensorSource:
    """Tensors whose first axis is the rows; a batch is the tuple of the chosen rows of each."""

    def __init__(self, *tensors: Tensor, labels: Any = None, lengths: Any = None) -> None:
        require(len(tensors) > 0, "`tensors` must hold at least one tensor, got none")
        sizes = [len(t) for t in (*tensors, labels, lengths) if t is not None]
        require(
            len(set(sizes)) == 1,
            f"`tensors`, `labels` and `lengths` must have the same number of rows, got {sizes}",
        )
        self.tensors, self.labels, self.lengths = tensors, labels, lengths

    def __len__(self) -> int:
        return len(self.tensors[0])

    def batch(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Return the chosen rows of every tensor."""
        return tuple(tensor[rows] for tensor in self.tensors)


class SequenceBatch(NamedTuple):
    """Sequences padded with zeros to the longest of them; `lengths` is None if there is no padding."""

    values: Float[Tensor, "rows time channels"]
    lengths: Int[Tensor, " rows"] | None
    labels: Int[Tensor, " rows"] | None
    weights: Float[Tensor, " rows"] | None


class SequenceSource:
    """Sequences without missing values, optionally with labels and row weights."""

    def __init__(
        self,
        sequences: Sequences,
        labels: Int[Tensor, " rows"] | None = None,
        weights: Float[Tensor, " rows"] | None = None,
    ) -> None:
        require(
            sequences.times is None and sequences.static is None and not np.isnan(sequences.values).any(),
            "`sequences` must have no times, no static features and no missing entries; see `Preparation`",
        )
        for name, column in (("labels", labels), ("weights", weights)):
            rows = len(sequences) if column is None else len(column)
            require(rows == len(sequences), f"`{name}` must have {len(sequences)} rows, got {rows}")
        self.values = torch.tensor(sequences.values, dtype=torch.float32)
        self.steps = PackedSteps.of(sequences)
        self.lengths = self.steps.lengths
        self.labels, self.weights = labels, weights

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, rows: Tensor) -> SequenceBatch:
        """Return the chosen rows as a padded batch."""
        index = self.steps.padded(rows)
        labels, weights = (None if t is None else t[rows] for t in (self.labels, self.weights))
        return SequenceBatch(index.gather(self.values), index.lengths, labels, weights)

    @cached_property
    def digest(self) -> str:
        """A hash of all values, lengths, labels and weights."""
        return content_digest(self.values, self.lengths, self.labels, self.weights)


class Subset:
    """Some rows of another source, as for a validation split."""

    def __init__(self, source: Source, rows: Tensor) -> None:
        self.source, self.rows = source, torch.as_tensor(rows)

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, rows: Tensor) -> Any:
        """Return the chosen rows, numbered within the subset."""
        return self.source.batch(self.rows[rows])

    @cached_property
    def digest(self) -> str | None:
        """A hash of the source's digest and of the rows; None if the source has no digest."""
        whole = getattr(self.source, "digest", None)
        if whole is None:
            return None
        return hashlib.sha256(whole.encode() + self.rows.numpy().tobytes()).hexdigest()

    @property
    def labels(self) -> Any:
        """Labels of the subset, if the source has any."""
        return self._chosen("labels")

    @property
    def lengths(self) -> Any:
        """Lengths of the subset, if the source has any."""
        return self._chosen("lengths")

    def _chosen(self, name: str) -> Any:
        values = getattr(self.source, name, None)
        if values is None:
            return None
        return values[self.rows] if isinstance(values, Tensor) else [values[i] for i in self.rows.tolist()]
