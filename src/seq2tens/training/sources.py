"""Where batches come from."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from seq2tens._checks import require


class Source(Protocol):
    """What the loop asks of data: a length, and the batch of some rows.

    Two optional attributes with one entry per row serve sampling: `labels` for balanced batches, `lengths`
    for buckets.
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


class Subset:
    """Some rows of another source, as for a validation split."""

    def __init__(self, source: Source, rows: Tensor) -> None:
        self.source, self.rows = source, torch.as_tensor(rows)

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, rows: Tensor) -> Any:
        """The chosen rows, counted within the subset."""
        return self.source.batch(self.rows[rows])

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
