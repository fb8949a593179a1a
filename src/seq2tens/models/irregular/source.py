"""Batches that keep missing entries, times and static features apart."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seq2tens import _checks as check
from seq2tens.data import Batch, Sequences, collate, content_digest


class IrregularSource:
    """A source for `training.fit`: sequences, and their labels 0, 1, … if there are any.

    The sequences should be standardised with statistics of the training set, see `IrregularScaler`, since the
    networks treat 0 as the mean. A batch is a pair of `data.Batch` and labels (None without labels).
    """

    def __init__(self, sequences: Sequences, labels: Any = None) -> None:
        self.sequences = sequences
        self.lengths = torch.tensor(sequences.lengths)
        self.labels = None if labels is None else torch.as_tensor(np.array(labels)).long()
        rows = len(sequences) if self.labels is None else len(self.labels)
        check.require(rows == len(sequences), f"`labels` must have {len(sequences)} rows, got {rows}")

    def __len__(self) -> int:
        return len(self.sequences)

    def batch(self, rows: Tensor) -> tuple[Batch, Tensor | None]:
        """Return the chosen rows."""
        rows = torch.as_tensor(rows)
        return collate(self.sequences, rows.numpy()), None if self.labels is None else self.labels[rows]

    @cached_property
    def digest(self) -> str:
        """A hash of the contents."""
        sequences = self.sequences
        return content_digest(
            sequences.values, sequences.offsets, sequences.times, sequences.static, self.labels
        )
