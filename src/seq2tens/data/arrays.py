"""Conversion to and from the array formats of aeon, tslearn and PyPOTS.

None of them can hold `times` and `static`, which are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from seq2tens._checks import require
from seq2tens.data import _packed
from seq2tens.data.labelled import Labelled
from seq2tens.data.sequences import Sequences


def from_aeon(X: np.ndarray | Sequence[np.ndarray]) -> Sequences:
    """Convert a 3-D array `(n, channels, time)` or a list of arrays `(channels, time)`."""
    if isinstance(X, np.ndarray):
        return from_cube(_packed.check_cube("X", X, "(n, channels, time)").transpose(0, 2, 1))
    arrays = [_packed.as_floating(f"X[{i}]", array) for i, array in enumerate(X)]
    _packed.check_list("X", arrays, "(channels, time)")
    return Sequences.from_list([array.T for array in arrays])


def to_aeon(
    sequences: Sequences,
) -> Float[np.ndarray, "n channels time"] | list[Float[np.ndarray, "channels time"]]:
    """Return a 3-D array `(n, channels, time)` if lengths are equal, else a list of `(channels, time)`."""
    lengths = sequences.lengths
    if len(np.unique(lengths)) > 1:
        return [np.ascontiguousarray(sequence.T) for sequence in sequences]
    steps = int(lengths[0]) if len(lengths) else 0
    cube = sequences.values.reshape(len(sequences), steps, sequences.n_channels)
    return np.ascontiguousarray(cube.transpose(0, 2, 1))


def from_padded(X: Float[np.ndarray, "n time channels"]) -> Sequences:
    """Convert an array of tslearn, padded with NaN: trailing steps that are all NaN are padding."""
    X = _packed.check_cube("X", X, "(n, time, channels)")
    observed = ~np.isnan(X).all(axis=2)
    steps = np.arange(1, X.shape[1] + 1)
    lengths = (observed * steps).max(axis=1, initial=0)
    inside = steps <= lengths[:, None]
    return Sequences(X[inside], _packed.offsets_of(lengths))


def to_padded(sequences: Sequences) -> Float[np.ndarray, "n time channels"]:
    """Return an array padded with NaN to the length of the longest sequence.

    A sequence whose last step has no observations is an error: the step would look like padding.
    """
    for i, sequence in enumerate(sequences):
        require(
            len(sequence) == 0 or not np.isnan(sequence[-1]).all(),
            f"`sequences` must not end with a step that is all NaN (the padding), but sequence {i} does",
        )
    return _nan_padded(sequences)


def from_pypots(data: Mapping[str, Any]) -> Labelled:
    """Convert a dictionary of PyPOTS: `X` of shape (n, steps, features), NaN where missing, optionally `y`.

    Steps without observations are kept, since all samples of PyPOTS have the same number of steps.
    """
    unknown = sorted(set(data) - {"X", "y"})
    require("X" in data and not unknown, f'`data` must have the key "X", optionally "y", got {sorted(data)}')
    sequences = from_cube(_packed.check_cube('data["X"]', data["X"], "(n, steps, features)"))
    return Labelled(sequences, None if data.get("y") is None else np.asarray(data["y"]))


def to_pypots(labelled: Labelled) -> dict[str, np.ndarray]:
    """Return a dictionary of PyPOTS; shorter sequences are padded with NaN."""
    data = {"X": _nan_padded(labelled.sequences)}
    return data if labelled.labels is None else {**data, "y": labelled.labels}


def from_cube(X: Float[np.ndarray, "n time channels"]) -> Sequences:
    """Convert an array of sequences of equal length."""
    n, steps, channels = X.shape
    return Sequences(X.reshape(n * steps, channels), np.arange(n + 1) * steps)


def _nan_padded(sequences: Sequences) -> Float[np.ndarray, "n time channels"]:
    lengths = sequences.lengths
    inside = np.arange(lengths.max(initial=0)) < lengths[:, None]
    padded = np.full((*inside.shape, sequences.n_channels), np.nan, dtype=sequences.values.dtype)
    padded[inside] = sequences.values
    return padded
