"""Packed `.npz` files: training and test set in five arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from seq2tens.data.labelled import Labelled, Split
from seq2tens.data.readers._text import malformed, naming
from seq2tens.data.readers._zip import read_arrays
from seq2tens.data.sequences import Sequences

KEYS = ("X", "offsets", "y", "classes", "n_train")


def read_npz(path: str | Path) -> Split:
    """Read a packed `.npz` file; the labels are the names in `classes`.

    `X` holds all series stacked along time, series `i` is `X[offsets[i]:offsets[i + 1]]`, `y` its class as an
    index into `classes`, and the first `n_train` series are the training set.
    """
    path = Path(path)
    arrays = read_arrays(path, KEYS)
    with naming(path):
        both = Labelled(Sequences(arrays["X"], arrays["offsets"]), _names(path, arrays))
    n_train = arrays["n_train"]
    if n_train.ndim or n_train.dtype.kind not in "iu" or not 0 <= n_train <= len(both):
        raise malformed(path, f"`n_train` must be an integer in 0..{len(both)}, got {n_train}")
    return Split(both[: int(n_train)], both[int(n_train) :])


def _names(path: Path, arrays: dict[str, np.ndarray]) -> np.ndarray:
    codes, classes = arrays["y"], arrays["classes"]
    if codes.dtype.kind not in "iu":
        raise malformed(path, f"`y` must be integers, got dtype {codes.dtype}")
    if classes.ndim != 1 or classes.dtype.kind not in "USiufb":
        raise malformed(
            path,
            f"`classes` must be a list of names or numbers, got {classes.dtype} of shape {classes.shape}",
        )
    out_of_range = np.flatnonzero((codes < 0) | (codes >= len(classes)))
    if len(out_of_range):
        i = out_of_range[0]
        raise malformed(
            path, f"`y` must lie in 0..{len(classes) - 1} (`classes`), got {codes[i]} at index {i}"
        )
    return classes[codes]
