"""The `.mat` files of Baydogan's archive of multivariate time series.

One struct, `mts`, with the cells `train` and `test` (each series a matrix, channels × time) and the vectors
`trainlabels` and `testlabels`.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from seq2tens.data._optional import optional
from seq2tens.data.arrays import from_aeon
from seq2tens.data.labelled import Labelled, Split
from seq2tens.data.readers._text import malformed, naming

FIELDS = ("train", "trainlabels", "test", "testlabels")


def read_mat(path: str | Path) -> Split:
    """Read a `.mat` file of the archive; labels are integers."""
    path = Path(path)
    struct = _struct(path)
    with naming(path):
        return Split(_half(path, struct, "train"), _half(path, struct, "test"))


def _struct(path: Path) -> np.ndarray:
    """The one struct of the file that has the fields."""
    contents = _contents(path)
    fitting = [array for array in contents.values() if set(FIELDS) <= set(array.dtype.names or ())]
    if len(fitting) == 1 and fitting[0].size == 1:
        return fitting[0].reshape(())
    found = [f"{name} {array.dtype.names or array.dtype}" for name, array in contents.items()]
    raise malformed(
        path, f"must hold one struct with the fields {', '.join(FIELDS)}; found {'; '.join(found)}"
    )


def _contents(path: Path) -> dict[str, np.ndarray]:
    io = optional("scipy.io", "reading .mat files")
    with path.open("rb") as file:
        return _load(io, file, path)


def _load(io: Any, file: BinaryIO, path: Path) -> dict[str, np.ndarray]:
    try:
        contents: dict[str, Any] = io.loadmat(file)
    except NotImplementedError as error:
        raise malformed(path, "is a MATLAB 7.3 file (HDF5), which is not read; save it with `-v7`") from error
    except (ValueError, TypeError, OSError, zlib.error, io.matlab.MatReadError) as error:
        raise malformed(path, f"must be a MATLAB 5–7 file: {error}") from error
    return {name: array for name, array in contents.items() if isinstance(array, np.ndarray)}


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
    """MATLAB keeps whole numbers as floats; they come back as integers."""
    labels = np.asarray(struct[name].item()).ravel()
    if labels.dtype.kind not in "fiub" or not np.array_equal(labels, np.floor(labels)):
        raise malformed(path, f"`{name}` must hold whole numbers, got {labels.dtype} {labels[:3]}")
    return labels.astype(np.int64)
