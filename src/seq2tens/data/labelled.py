"""Sequences with their labels, and the two halves of a data set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Shaped

from seq2tens._checks import require
from seq2tens.data.sequences import Rows, Sequences


@dataclass(frozen=True, eq=False)
class Labelled:
    """Sequences and one label each, as found in the file (strings, integers or, for regression, floats).

    `labels` is None where the source has none.
    """

    sequences: Sequences
    labels: Shaped[np.ndarray, " sequences"] | None = None

    def __post_init__(self) -> None:
        if self.labels is not None:
            labels = np.asarray(self.labels)
            n = len(self.sequences)
            require(
                labels.shape == (n,), f"`labels` must have shape (sequences,) = ({n},), got {labels.shape}"
            )
            object.__setattr__(self, "labels", labels)

    def __len__(self) -> int:
        return len(self.sequences)

    def __getitem__(self, rows: Rows) -> Labelled:
        labels = self.labels
        chosen = self.sequences[rows]
        return Labelled(chosen, None if labels is None else np.atleast_1d(labels[rows]))


@dataclass(frozen=True, eq=False)
class Split:
    """A data set in two halves; `train, test = split` unpacks it."""

    train: Labelled
    test: Labelled

    def __post_init__(self) -> None:
        train, test = self.train.sequences.n_channels, self.test.sequences.n_channels
        require(train == test, f"`test` must have the {train} channels of `train`, got {test}")

    def __iter__(self) -> Iterator[Labelled]:
        return iter((self.train, self.test))
