"""Where batches come from."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from seq2tens._checks import require
from seq2tens.data import Sequences


class Source(Protocol):
    """What the loop asks of data: a length, and the batch of some rows.

    Two optional attributes with one entry per row serve sampling: `labels` for balanced batches, `lengths`
    for buckets. With an optional `digest` of the data, a checkpoint can tell data that is not its own.
    """

    def __len__(self) -> int: ...

    def batch(self, rows: Tensor) -> Any:
        """These rows as tensors, or as tuples, lists and dicts of them."""
        ...


class TensorSource:
    """Tensors whose first axis counts the rows; a batch is the tuple of their chosen rows."""

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
        """The chosen rows of every tensor."""
        return tuple(tensor[rows] for tensor in self.tensors)


class SequenceBatch(NamedTuple):
    """Sequences padded with zeros to the longest of them; `lengths` is None if there is no padding."""

    values: Float[Tensor, "rows time channels"]
    lengths: Int[Tensor, " rows"] | None
    labels: Int[Tensor, " rows"] | None
    weights: Float[Tensor, " rows"] | None


class Steps(NamedTuple):
    """Where the steps of some sequences are in a tensor of all steps; `lengths` is None without padding."""

    places: Int[Tensor, "rows time"]
    outside: Bool[Tensor, "rows time"] | None
    lengths: Int[Tensor, " rows"] | None

    @classmethod
    def of(cls, rows: Tensor, starts: Int[Tensor, " all"], all_lengths: Int[Tensor, " all"]) -> Steps:
        """Those of the chosen rows."""
        lengths = all_lengths[rows]
        longest = max(1, int(lengths.max()))
        step = torch.arange(longest)
        index = starts[rows][:, None] + step
        if int(lengths.min()) == longest:
            return cls(index, None, None)
        outside = step >= lengths[:, None]
        return cls(index.masked_fill_(outside, 0), outside, lengths)

    def gather(self, steps: Shaped[Tensor, "steps channels"]) -> Shaped[Tensor, "rows time channels"]:
        """The steps at these places, padded with zeros."""
        values = steps.index_select(0, self.places.flatten()).view(*self.places.shape, -1)
        return values if self.outside is None else values.masked_fill_(self.outside[..., None], 0)


class SequenceSource:
    """Sequences without gaps, with labels and row weights if there are any.

    The steps of all sequences are one tensor, from which a batch is gathered at once: padding every sequence
    to the longest of all would be no faster, and can need any amount of memory.
    """

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
        for name, given in (("labels", labels), ("weights", weights)):
            require(
                given is None or len(given) == len(sequences),
                f"`{name}` must have {len(sequences)} rows, got {0 if given is None else len(given)}",
            )
        self.steps = torch.tensor(sequences.values, dtype=torch.float32)
        self.starts = torch.tensor(sequences.offsets[:-1])
        self.lengths = torch.tensor(sequences.lengths)
        self.labels, self.weights = labels, weights

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, rows: Tensor) -> SequenceBatch:
        """The chosen rows."""
        places = Steps.of(rows, self.starts, self.lengths)
        values = places.gather(self.steps)
        labels, weights = (None if t is None else t[rows] for t in (self.labels, self.weights))
        return SequenceBatch(values, places.lengths, labels, weights)

    @cached_property
    def digest(self) -> str:
        """A hash of all there is."""
        total = hashlib.sha256()
        for tensor in (self.steps, self.lengths, self.labels, self.weights):
            total.update(b"none" if tensor is None else tensor.contiguous().numpy().tobytes())
        return total.hexdigest()


class Subset:
    """Some rows of another source, as for a validation split."""

    def __init__(self, source: Source, rows: Tensor) -> None:
        self.source, self.rows = source, torch.as_tensor(rows)

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, rows: Tensor) -> Any:
        """The chosen rows, counted within the subset."""
        return self.source.batch(self.rows[rows])

    @cached_property
    def digest(self) -> str | None:
        """A hash of the source's and of the rows, if the source has one."""
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
