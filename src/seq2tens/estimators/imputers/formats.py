"""Conversion of collections to sequences, and back to the type of the input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import torch
from jaxtyping import Float

from seq2tens._checks import require
from seq2tens.data import Encoding, Labelled, Sequences, fill_columns, from_pypots, is_frame, to_aeon
from seq2tens.estimators.inputs import (
    as_sequences,
    index_has_times,
    long_table,
    read_collection,
    standard_columns,
)

Values = Float[np.ndarray, "steps channels"]


class Collection(NamedTuple):
    """Sequences, and how to convert others of the same shape back to the type of the input."""

    labelled: Labelled
    restore: Callable[[Sequences], Any]
    stacks: bool = False  # whether several collections become one array with an additional axis

    @property
    def sequences(self) -> Sequences:
        """The sequences to fill."""
        return self.labelled.sequences

    def with_values(self, values: Values) -> Any:
        """Return the same collection with other values."""
        return self.restore(self.sequences.with_values(values.astype(self.sequences.values.dtype)))

    def stacked(self, copies: list[Any]) -> Any:
        """Combine several collections of the same type."""
        if not self.stacks:
            return copies
        return torch.stack(copies) if isinstance(copies[0], torch.Tensor) else np.stack(copies)


def read(X: Any, encoding: Encoding | None = None) -> Collection:
    """Read a collection.

    It is an array or tensor `(n, channels, time)`, a list of arrays or frames, a frame indexed by (instance,
    time) or with a column `id`, `Labelled`, `Sequences`, or a dictionary of PyPOTS.
    """
    if isinstance(X, Mapping):
        return _from_dictionary(X)
    if is_frame(X[0] if isinstance(X, list) and X else X):
        return _from_frames(X, encoding)
    labelled = read_collection(X, encoding)
    return Collection(labelled, *_restoring(X))


def _restoring(X: Any) -> tuple[Callable[[Sequences], Any], bool]:
    if isinstance(X, Sequences):
        return lambda filled: filled, False
    if isinstance(X, Labelled):
        return lambda filled: replace(X, sequences=filled), False
    if isinstance(X, list) and isinstance(X[0], Sequences | Labelled):
        ends = np.cumsum([len(part) for part in X]).tolist()
        bounds = [(end - len(part), end) for part, end in zip(X, ends, strict=True)]
        return (
            lambda filled: [
                _restoring(part)[0](filled[start:end]) for part, (start, end) in zip(X, bounds, strict=True)
            ],
            False,
        )
    if isinstance(X, list):
        return lambda filled: [_array(*pair) for pair in zip(filled, X, strict=True)], False
    return lambda filled: _like(np.reshape(to_aeon(filled), X.shape), X), True


def _from_dictionary(X: Mapping[str, Any]) -> Collection:
    require("X" in X, f'`X` as a dictionary must have the key "X", got {sorted(X)}')
    sequences = as_sequences(from_pypots({"X": X["X"]}).sequences)
    shape = (len(sequences), -1, sequences.n_channels)
    return Collection(Labelled(sequences), lambda filled: {**X, "X": filled.values.reshape(shape).copy()})


def _from_frames(X: Any, encoding: Encoding | None) -> Collection:
    """Read frames; their rows keep their order."""
    order = None
    if index_has_times(X):
        labelled = read_collection(X, encoding)
    else:
        table = long_table(X, encoding)
        labelled, order = table.gather(standard_columns(encoding)), table.order
    places = _number_columns(labelled.encoding)
    frames = X if isinstance(X, list) else [X]
    ends = np.cumsum([len(frame) for frame in frames])

    def restore(filled: Sequences) -> Any:
        values = filled.values
        if order is not None:
            values = np.empty_like(values)
            values[order] = filled.values
        parts = np.split(values, ends[:-1])
        restored = [_frame(part, frame, places) for part, frame in zip(parts, frames, strict=True)]
        return restored if isinstance(X, list) else restored[0]

    return Collection(labelled, restore)


def _number_columns(encoding: Encoding | None) -> dict[str, int]:
    """Return the channel of each numeric column; strings are not filled."""
    columns = () if encoding is None else encoding.columns
    widths = [len(column.channels) for column in columns]
    starts = np.cumsum([0, *widths]).tolist()
    return {
        column.name: start
        for column, start in zip(columns, starts, strict=False)
        if column.categories is None
    }


def _like(filled: np.ndarray, like: Any) -> Any:
    """Convert to a tensor on the device of the input, or leave as an array."""
    return torch.tensor(filled).to(like) if isinstance(like, torch.Tensor) else filled


def _array(filled: Values, like: Any) -> Any:
    """Convert to the axes and, if floating-point, the dtype of the input."""
    if isinstance(like, torch.Tensor):
        return _like(np.ascontiguousarray(filled.T).reshape(tuple(like.shape)), like)
    dtype = like.dtype if like.dtype.kind == "f" else filled.dtype
    return np.ascontiguousarray(filled.T).reshape(like.shape).astype(dtype)


def _frame(filled: Values, like: Any, places: Mapping[str, int]) -> Any:
    """Convert to a frame with the index, columns and dtypes of the input."""
    if not isinstance(like, pd.DataFrame):
        return fill_columns(like, {name: filled[:, place] for name, place in places.items()})
    frame = like.copy()
    for position, (name, dtype) in enumerate(zip(like.columns, like.dtypes, strict=True)):
        if str(name) in places and like.iloc[:, position].isna().any():
            # integers and booleans with missing values become floating-point numbers
            dtype = dtype if dtype.kind == "f" else "Float64"
            frame.isetitem(position, pd.array(filled[:, places[str(name)]], dtype=dtype))
    return frame
