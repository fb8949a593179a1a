"""What estimators accept: aeon's collections, and `Sequences`, which aeon does not know."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from aeon.utils.validation.collection import get_type
from jaxtyping import Shaped
from sklearn.utils.multiclass import type_of_target

from seq2tens._checks import ArgumentError, require
from seq2tens.data import Sequences, from_aeon, from_df_list, from_multiindex


def as_sequences(X: Any) -> Sequences:
    """The collection as sequences of at least one step each.

    A list of `Sequences`, which is what scikit-learn makes of a selection of rows, is joined.
    """
    sequences = _converted(X)
    require(len(sequences) > 0, "`X` must hold at least one sequence, got none")
    empty = np.flatnonzero(sequences.lengths == 0)
    require(
        len(empty) == 0,
        f"`X` must have at least one step in every sequence, got none in sequence {empty[:1].sum()}",
    )
    return sequences


def as_labels(y: Any, n: int) -> Shaped[np.ndarray, " rows"]:
    """The labels of `n` sequences as an array."""
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
    """Texts that are all numbers as numbers: a target that was read from a `.csv` is still a target."""
    if not all(isinstance(label, str) for label in labels):
        return labels
    try:
        numbers = labels.astype(np.float64)
    except ValueError:
        return labels
    return numbers if np.isfinite(numbers).all() else labels


def _converted(X: Any) -> Sequences:
    if isinstance(X, Sequences):
        return X
    if isinstance(X, list):
        require(len(X) > 0, "`X` must hold at least one sequence, got an empty list")
        if isinstance(X[0], Sequences):
            return Sequences.concatenate(X)
        X = [x[None] if isinstance(x, np.ndarray) and x.ndim == 1 else x for x in X]
    return _READERS[collection_type(X)](X)


def _refuse_wide(X: pd.DataFrame) -> Sequences:
    """aeon's rows would be sequences, where the rows of every other frame are steps."""
    raise TypeError(
        "`X` must be a list of frames, whose rows are steps, or a frame indexed by (instance, time), got one "
        f"frame of {len(X)} rows; `[X]` is one sequence, `X.to_numpy()` one of a channel in each row"
    )


# By aeon's name of the kind; its own conversion takes the rows of frames for channels and sorts instances.
_READERS: dict[str, Callable[[Any], Sequences]] = {
    "numpy3D": from_aeon,
    "np-list": from_aeon,
    "numpy2D": lambda X: from_aeon(X[:, None]),
    "df-list": partial(from_df_list, name="X"),
    "pd-multiindex": partial(from_multiindex, name="X"),
    "pd-wide": _refuse_wide,
}


def collection_type(X: Any) -> str:
    """aeon's name for this kind of collection."""
    try:
        return get_type(X)
    except (TypeError, ValueError) as error:
        received = f"list of {type(X[0]).__name__}" if isinstance(X, list) else type(X).__name__
        raise TypeError(
            "`X` must be an array (n, channels, time) of numbers, a list of arrays (channels, time) or of "
            "frames (time, channels), a frame indexed by (instance, time) or `Sequences`, "
            f"got {received} ({error})"
        ) from error


def doubt_axes(X: Any) -> None:
    """Warn where `(time, channels)` is likely meant; arrays of unequal length cannot be mistaken."""
    cube = isinstance(X, np.ndarray)
    arrays = X if isinstance(X, list) else []
    shapes = {X.shape[1:]} if cube else {x.shape for x in arrays if isinstance(x, np.ndarray)}
    if len(shapes) != 1 or len(shape := shapes.pop()) != 2 or shape[1] >= shape[0]:
        return
    channels, steps = shape
    remedy = "X.transpose(0, 2, 1)" if cube else "[x.T for x in X]"
    warnings.warn(
        f"`X` is read as sequences of {channels} channels and {steps} steps, its axes as (channels, time); "
        f"if it has {channels} steps of {steps} channels, give `{remedy}` (`Sequences` are never doubted)",
        stacklevel=4,
    )


def column_names(X: Any) -> list[str] | None:
    """The names of the channels, where X is made of frames."""
    frame = X[0] if isinstance(X, list) else X
    return [str(name) for name in frame.columns] if isinstance(frame, pd.DataFrame) else None


def metadata_of(sequences: Sequences) -> dict[str, Any]:
    """What aeon notes about training data."""
    lengths = np.unique(sequences.lengths)
    return {
        "multivariate": sequences.n_channels > 1,
        "missing_values": bool(np.isnan(sequences.values).any()),
        "unequal_length": len(lengths) > 1,
        "n_cases": len(sequences),
        "n_channels": sequences.n_channels,
        "n_timepoints": int(lengths[0]) if len(lengths) == 1 else None,
    }
