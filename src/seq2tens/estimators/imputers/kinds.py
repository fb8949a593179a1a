"""Collections as sequences, and sequences back as the kind of collection that was given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from aeon.utils.conversion import convert_collection
from jaxtyping import Float

from seq2tens._checks import require
from seq2tens.data import Sequences, from_pypots
from seq2tens.estimators.inputs import as_sequences, collection_type

Values = Float[np.ndarray, "steps channels"]


class Collection(NamedTuple):
    """Sequences, and how to give others of the same shape back as the kind that they came in."""

    sequences: Sequences
    restore: Callable[[Sequences], Any]
    stacks: bool = False  # whether several of the kind are one array with an axis more

    def with_values(self, values: Values) -> Any:
        """The same collection with other values."""
        own = self.sequences
        return self.restore(Sequences(values.astype(own.values.dtype), own.offsets, own.times, own.static))


def read(X: Any) -> Collection:
    """An array `(n, channels, time)`, a list of arrays, `Sequences`, the dictionary of PyPOTS, or another of
    aeon's collections."""
    if isinstance(X, Mapping):
        return _from_dictionary(X)
    sequences = as_sequences(X)
    if isinstance(X, Sequences):
        return Collection(sequences, lambda filled: filled)
    if isinstance(X, list) and isinstance(X[0], Sequences):
        ends = np.cumsum([len(part) for part in X])
        return Collection(
            sequences,
            lambda filled: [
                filled[end - len(part) : end] for part, end in zip(X, ends.tolist(), strict=True)
            ],
        )
    if isinstance(X, list) and isinstance(X[0], np.ndarray):
        return Collection(sequences, lambda filled: _arrays(filled, X))
    kind = collection_type(X)
    return Collection(
        sequences, lambda filled: convert_collection(_matrices(filled), kind), kind in ("numpy3D", "numpy2D")
    )


def _from_dictionary(X: Mapping[str, Any]) -> Collection:
    require("X" in X, f'`X` as a dictionary must have the key "X", got {sorted(X)}')
    sequences = as_sequences(from_pypots({"X": X["X"]}).sequences)
    shape = (len(sequences), -1, sequences.n_channels)
    return Collection(sequences, lambda filled: {**X, "X": filled.values.reshape(shape).copy()})


def _matrices(filled: Sequences) -> list[Float[np.ndarray, "channels time"]]:
    return [np.ascontiguousarray(sequence.T) for sequence in filled]


def _arrays(filled: Sequences, like: list[np.ndarray]) -> list[np.ndarray]:
    """Each with the axes and, where it is one for fractions, the type of the one that was given."""
    return [
        (matrix[0] if given.ndim == 1 else matrix).astype(_floating(given.dtype, matrix.dtype))
        for matrix, given in zip(_matrices(filled), like, strict=True)
    ]


def _floating(given: np.dtype, otherwise: np.dtype) -> np.dtype:
    return given if given.kind == "f" else otherwise
