"""Collections as sequences, and sequences back as the kind of collection that was given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from jaxtyping import Float

from seq2tens._checks import require
from seq2tens.data import Sequences, from_pypots, to_aeon
from seq2tens.estimators.inputs import as_sequences

Values = Float[np.ndarray, "steps channels"]


class Collection(NamedTuple):
    """Sequences, and how to give others of the same shape back as the kind that they came in."""

    sequences: Sequences
    restore: Callable[[Sequences], Any]
    stacks: bool = False  # whether several of the kind are one array with an axis more

    def with_values(self, values: Values) -> Any:
        """The same collection with other values."""
        return self.restore(self.sequences.with_values(values.astype(self.sequences.values.dtype)))


def read(X: Any) -> Collection:
    """An array `(n, channels, time)`, a list of arrays or of frames, a frame indexed by (instance, time),
    `Sequences`, or the dictionary of PyPOTS."""
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
    if isinstance(X, list):
        like = _frame if isinstance(X[0], pd.DataFrame) else _array
        return Collection(sequences, lambda filled: [like(*pair) for pair in zip(filled, X, strict=True)])
    if isinstance(X, pd.DataFrame):
        return Collection(sequences, lambda filled: _frame(filled.values, X))
    return Collection(sequences, lambda filled: np.reshape(to_aeon(filled), X.shape), stacks=True)


def _from_dictionary(X: Mapping[str, Any]) -> Collection:
    require("X" in X, f'`X` as a dictionary must have the key "X", got {sorted(X)}')
    sequences = as_sequences(from_pypots({"X": X["X"]}).sequences)
    shape = (len(sequences), -1, sequences.n_channels)
    return Collection(sequences, lambda filled: {**X, "X": filled.values.reshape(shape).copy()})


def _array(filled: Values, like: np.ndarray) -> np.ndarray:
    """With the axes and, where it is one for fractions, the type of the one that was given."""
    dtype = like.dtype if like.dtype.kind == "f" else filled.dtype
    return np.ascontiguousarray(filled.T).reshape(like.shape).astype(dtype)


def _frame(filled: Values, like: pd.DataFrame) -> pd.DataFrame:
    """With the index, columns and types of the one that was given."""
    frame = like.copy()
    for position, dtype in enumerate(like.dtypes):
        if dtype.kind == "f":  # others miss nothing
            frame.isetitem(position, pd.array(filled[:, position], dtype=dtype))
    return frame
