"""Packed `.npz` files: both halves of a data set in five arrays."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np

from seq2tens.data.labelled import Labelled, Split
from seq2tens.data.readers._text import malformed, naming
from seq2tens.data.sequences import Sequences

KEYS = ("X", "offsets", "y", "classes", "n_train")


def read_npz(path: str | Path) -> Split:
    """Read a packed `.npz` file; the labels are the names in `classes`.

    `X` holds all series stacked along time, series `i` is `X[offsets[i]:offsets[i + 1]]`, `y` its class as an
    index into `classes`, and the first `n_train` series are the training set.
    """
    path = Path(path)
    arrays = _arrays(path)
    with naming(path):
        both = Labelled(Sequences(arrays["X"], arrays["offsets"]), _names(path, arrays))
    n_train = arrays["n_train"]
    if n_train.ndim or n_train.dtype.kind not in "iu" or not 0 <= n_train <= len(both):
        raise malformed(path, f"`n_train` must be an integer in 0..{len(both)}, got {n_train}")
    return Split(both[: int(n_train)], both[int(n_train) :])


def _arrays(path: Path) -> dict[str, np.ndarray]:
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise malformed(path, "must be a zip of arrays as `numpy.savez` writes it")
        file.seek(0)
        try:
            with np.load(file, allow_pickle=False) as archive:
                arrays = {key: archive[key] for key in archive.files}
        except (ValueError, zipfile.BadZipFile, zlib.error) as error:
            raise malformed(path, f"must hold plain arrays only: {error}") from error
    if not set(KEYS) <= set(arrays):
        raise malformed(path, f"must hold the arrays {', '.join(KEYS)}, found {', '.join(arrays)}")
    return arrays


def _names(path: Path, arrays: dict[str, np.ndarray]) -> np.ndarray:
    codes, classes = arrays["y"], arrays["classes"]
    if codes.dtype.kind not in "iu":
        raise malformed(path, f"`y` must be integers, got dtype {codes.dtype}")
    outside = np.flatnonzero((codes < 0) | (codes >= len(classes)))
    if len(outside):
        i = outside[0]
        raise malformed(
            path, f"`y` must lie in 0..{len(classes) - 1} (`classes`), got {codes[i]} at index {i}"
        )
    return classes[codes]
