"""Sequences with labels, and data sets with a training and a test set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Shaped

from seq2tens._checks import require
from seq2tens.data import _packed
from seq2tens.data.sequences import Rows, Sequences

if TYPE_CHECKING:
    from seq2tens.data.tables.encoding import Encoding


@dataclass(frozen=True, eq=False)
class Labelled:
    """Sequences and one label each, as found in the file (strings, integers or, for regression, floats).

    `ids` are the names of the sequences, `channels` those of the channels; they are None if the source has
    none. `index_columns` are columns of a table that number its rows, which are not read as channels unless
    requested; `encoding` describes how the others became channels, and `notes` what the reader guessed.
    """

    sequences: Sequences
    labels: Shaped[np.ndarray, " sequences"] | None = None
    ids: Shaped[np.ndarray, " sequences"] | None = None
    channels: tuple[str, ...] | None = None
    index_columns: tuple[str, ...] = ()
    encoding: Encoding | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _packed.check_columns(self, len(self.sequences), self.sequences.n_channels, "sequences")

    def __len__(self) -> int:
        return len(self.sequences)

    def __getitem__(self, rows: Rows) -> Labelled:
        labels, ids = (
            None if array is None else np.atleast_1d(array[rows]) for array in (self.labels, self.ids)
        )
        return replace(self, sequences=self.sequences[rows], labels=labels, ids=ids)


@dataclass(frozen=True, eq=False)
class Split:
    """A data set with a training and a test set; `train, test = split` unpacks it."""

    train: Labelled
    test: Labelled

    def __post_init__(self) -> None:
        train, test = self.train.sequences.n_channels, self.test.sequences.n_channels
        require(train == test, f"`test` must have the {train} channels of `train`, got {test}")

    def __iter__(self) -> Iterator[Labelled]:
        return iter((self.train, self.test))
