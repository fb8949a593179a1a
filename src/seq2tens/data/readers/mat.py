"""The `.mat` files of Baydogan's archive of multivariate time series.

One struct, `mts`, with the cells `train` and `test` (each series a matrix, channels × time) and the vectors
`trainlabels` and `testlabels`.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from seq2tens.data.arrays import from_aeon
from seq2tens.data.labelled import Labelled, Split
from seq2tens.data.readers import _mat5
from seq2tens.data.readers._text import malformed, naming
from seq2tens.data.readers._zip import ALLOWED_RATIO, ALLOWED_SIZE

FIELDS = ("train", "trainlabels", "test", "testlabels")


def read_mat(path: str | Path) -> Split:
    """Read a `.mat` file of the archive; labels are integers."""
    path = Path(path)
    struct = _struct(path)
    with naming(path):
        return Split(_half(path, struct, "train"), _half(path, struct, "test"))


def _struct(path: Path) -> np.ndarray:
    """Return the only struct of the file that has the fields."""
    contents = _contents(path)
    candidates = [array for array in contents.values() if set(FIELDS) <= set(array.dtype.names or ())]
    if len(candidates) == 1 and candidates[0].size == 1:
        return candidates[0].reshape(())
    contained = [f"{name} {array.dtype.names or array.dtype}" for name, array in contents.items()]
    raise malformed(
        path, f"must hold one struct with the fields {', '.join(FIELDS)}; found {'; '.join(contained)}"
    )


def _contents(path: Path) -> dict[str, np.ndarray]:
    content = path.read_bytes()
    try:
        return _mat5.parse(content, max(ALLOWED_SIZE, ALLOWED_RATIO * len(content)))
    except _mat5.Hdf5Error as error:
        raise malformed(
            path, "is a MATLAB 7.3 file (HDF5), which is not supported; save it with `-v7`"
        ) from error
    except (ValueError, OverflowError, MemoryError, zlib.error) as error:
        raise malformed(path, f"must be a MATLAB 5–7 file: {error}") from error


def _half(path: Path, struct: np.ndarray, name: str) -> Labelled:
    cells = struct[name].item()
    if cells.dtype != object:
        raise malformed(
            path, f"`{name}` must be a cell of matrices, got {cells.dtype} of shape {cells.shape}"
        )
    series = list(cells.ravel(order="F"))
    for i, matrix in enumerate(series):
        if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
            raise malformed(path, f"`{name}` must hold matrices of numbers, got {matrix.dtype} at cell {i}")
    if not series:
        raise malformed(path, f"`{name}` must hold at least one series, got none")
    return Labelled(from_aeon(series), _labels(path, struct, f"{name}labels"))


def _labels(path: Path, struct: np.ndarray, name: str) -> np.ndarray:
    """Return the labels as integers, which MATLAB stores as floats."""
    labels = np.asarray(struct[name].item()).ravel()
    whole = labels.dtype.kind in "fiub" and np.isfinite(labels).all() and (labels == np.floor(labels)).all()
    if not whole:
        raise malformed(path, f"`{name}` must hold integers, got {labels.dtype} {labels[:3]}")
    return labels.astype(np.int64)
