"""Conversion of estimator inputs: aeon's collections, tables, tensors and `Sequences`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import torch
from aeon.utils.validation.collection import get_type
from jaxtyping import Shaped
from sklearn.utils.multiclass import type_of_target

from seq2tens._checks import ArgumentError, require
from seq2tens.data import (
    Columns,
    Encoding,
    Labelled,
    Sequences,
    Table,
    from_aeon,
    is_frame,
    read_df_list,
    read_frame,
    read_frames,
    read_multiindex,
)


def as_sequences(X: Any, encoding: Encoding | None = None) -> Sequences:
    """Convert the collection to sequences of at least one step each."""
    return read_collection(X, encoding).sequences


def read_collection(X: Any, encoding: Encoding | None = None) -> Labelled:
    """Convert the collection to sequences of at least one step each, with its labels and names.

    A list of `Sequences`, as scikit-learn makes when it selects rows, is joined. `encoding` is that of the
    training frames.
    """
    labelled = _converted(X, encoding)
    sequences = labelled.sequences
    require(len(sequences) > 0, "`X` must hold at least one sequence, got none")
    empty = np.flatnonzero(sequences.lengths == 0)
    require(
        len(empty) == 0,
        f"`X` must have at least one step in every sequence, got none in sequence {empty[:1].sum()}",
    )
    return labelled


def as_labels(y: Any, n: int) -> Shaped[np.ndarray, " rows"]:
    """Return the labels of `n` sequences as an array."""
    labels = np.asarray(y)
    require(labels.ndim == 1, f"`y` must have one axis, got shape {labels.shape}")
    require(len(labels) == n, f"`y` must have {n} labels, one for each sequence of `X`, got {len(labels)}")
    for i in np.flatnonzero(pd.isna(labels)):
        raise ArgumentError(f"`y` must hold a label for every sequence, got {labels[i]} at index {i}")
    numbers = _read_numbers(labels)
    kind = type_of_target(numbers, input_name="y")
    example = f" such as {numbers[numbers % 1 != 0][0]}" if kind == "continuous" else ""
    require(kind in ("binary", "multiclass"), f"`y` must hold class labels, got {kind} values{example}")
    return labels


def _read_numbers(labels: Shaped[np.ndarray, " rows"]) -> Shaped[np.ndarray, " rows"]:
    """Convert labels that are all numeric text: a regression target read from a `.csv` is still one."""
    if not all(isinstance(label, str) for label in labels):
        return labels
    try:
        numbers = labels.astype(np.float64)
    except ValueError:
        return labels
    return numbers if np.isfinite(numbers).all() else labels


def _converted(X: Any, encoding: Encoding | None) -> Labelled:
    if isinstance(X, Labelled):
        return X
    if isinstance(X, Sequences):
        return Labelled(X)
    if isinstance(X, list):
        require(len(X) > 0, "`X` must hold at least one sequence, got an empty list")
        if isinstance(X[0], Sequences | Labelled):
            return _concatenated(X)
    if tables := _frame_reader(X):
        return tables(X, encoding)
    return Labelled(_READERS[collection_type(X := as_arrays(X))](X))


def _concatenated(parts: list[Any]) -> Labelled:
    if isinstance(parts[0], Sequences):
        return Labelled(Sequences.concatenate(parts))
    labels = None if parts[0].labels is None else np.concatenate([part.labels for part in parts])
    whole = Sequences.concatenate([part.sequences for part in parts])
    return replace(parts[0], sequences=whole, labels=labels, ids=None)


def as_arrays(X: Any) -> Any:
    """Convert tensors to arrays, masked entries to NaN, and vectors in a list to sequences of one channel."""
    if isinstance(X, torch.Tensor):
        return (X.float() if X.dtype == torch.bfloat16 else X).numpy(force=True)
    if isinstance(X, np.ma.MaskedArray):
        return np.ma.filled(X.astype(np.float64), np.nan)
    if not isinstance(X, list):
        return X
    arrays = [as_arrays(x) if isinstance(x, torch.Tensor | np.ma.MaskedArray) else x for x in X]
    return [x[None] if isinstance(x, np.ndarray) and x.ndim == 1 else x for x in arrays]


def _frame_reader(X: Any) -> Callable[[Any, Encoding | None], Labelled] | None:
    """Return the function that reads these frames; None if `X` holds no frames."""
    if not is_frame(X[0] if isinstance(X, list) else X):
        return None
    if not index_has_times(X):
        return lambda frame, encoding: long_table(frame, encoding).gather(standard_columns(encoding))
    if isinstance(X, list):
        return lambda frames, encoding: read_df_list(frames, "X", encoding)
    return lambda frame, encoding: read_multiindex(frame, "X", encoding)


def index_has_times(X: Any) -> bool:
    """Whether a pandas index holds the times, so that all columns are channels."""
    if isinstance(X, list):
        return isinstance(X[0], pd.DataFrame)
    return isinstance(X, pd.DataFrame) and X.index.nlevels == 2 and not has_ids(X)


def has_ids(frame: Any) -> bool:
    """Whether a frame has a column named `id`, which tells sequences apart."""
    names = getattr(frame, "column_names", None) or frame.columns  # pyarrow, or any other library
    return any(str(name).lower() == "id" for name in names)


def long_table(X: Any, encoding: Encoding | None) -> Table:
    """Read a frame with a row per step and the standard column names, or a list with a frame per sequence."""
    if isinstance(X, list):
        return read_frames(X, standard_columns(encoding), "X")
    if not has_ids(X):
        raise TypeError(
            "`X` must be a list of frames, whose rows are steps, a frame indexed by (instance, time), or one "
            f"with a column `id`, got one frame of {len(X)} rows; `[X]` is one sequence, and "
            "`Sequences.from_frame` reads it with the names of the columns, or with `wide=True` for one "
            "sequence per row"
        )
    return read_frame(X, standard_columns(encoding), "X")


def standard_columns(encoding: Encoding | None) -> Columns:
    """Return the standard column names, with the encoding of the training data."""
    unit = None if encoding is None else encoding.unit
    return Columns(label_optional=True, encoding=encoding, unit=unit or "s")


# By aeon's name of the collection type.
_READERS: dict[str, Callable[[Any], Sequences]] = {
    "numpy3D": from_aeon,
    "np-list": from_aeon,
    "numpy2D": lambda X: from_aeon(X[:, None]),
}


def collection_type(X: Any) -> str:
    """Return aeon's name of the collection type."""
    try:
        return get_type(X)
    except (TypeError, ValueError) as error:
        received = f"list of {type(X[0]).__name__}" if isinstance(X, list) else type(X).__name__
        raise TypeError(
            "`X` must be an array (n, channels, time) of numbers or a tensor, a list of arrays (channels, "
            "time) or of frames (time, channels), a frame indexed by (instance, time) or with a column `id`, "
            "`Labelled` or `Sequences`, "
            f"got {received} ({error})"
        ) from error


def warn_if_transposed(X: Any) -> None:
    """Warn if the axes are likely `(time, channels)`; arrays of unequal length cannot be mistaken."""
    cube = isinstance(X, np.ndarray | torch.Tensor)
    arrays = X if isinstance(X, list) else []
    shapes = {tuple(X.shape[1:])} if cube else {tuple(x.shape) for x in arrays if _is_array(x)}
    if len(shapes) != 1 or len(shape := shapes.pop()) != 2 or shape[1] >= shape[0]:
        return
    channels, steps = shape
    remedy = "X.transpose(0, 2, 1)" if cube else "[x.T for x in X]"
    warnings.warn(
        f"`X` is read as sequences of {channels} channels and {steps} steps, its axes as (channels, time); "
        f"if it has {channels} steps of {steps} channels, pass `{remedy}` (`Sequences` never cause this)",
        stacklevel=4,
    )


def _is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray | torch.Tensor)


def metadata_of(labelled: Labelled) -> dict[str, Any]:
    """Return aeon's metadata of the training data, and the encoding of its frames."""
    sequences, encoding = labelled.sequences, labelled.encoding
    lengths = np.unique(sequences.lengths)
    return {
        "multivariate": sequences.n_channels > 1,
        "missing_values": bool(np.isnan(sequences.values).any()),
        "unequal_length": len(lengths) > 1,
        "n_cases": len(sequences),
        "n_channels": sequences.n_channels,
        "n_timepoints": int(lengths[0]) if len(lengths) == 1 else None,
        "columns": None if labelled.channels is None else list(labelled.channels),
        "encoding": None if encoding is None else encoding.state(),
    }
