"""Safe reading of `.npz` files: only the requested arrays, and none larger than its header says."""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np

from seq2tens.data.readers._text import ReadError, malformed

# Real data compress by a factor of about ten; a file that claims far more would only fill the memory.
ALLOWED_RATIO = 200
ALLOWED_SIZE = 2**26
CHUNK = 2**20


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Read the arrays with these names, which must all be present."""
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise malformed(path, "must be a zip of arrays as `numpy.savez` writes it")
        try:
            with zipfile.ZipFile(file) as archive:
                return _members(path, archive, names)
        except ReadError:
            raise
        except Exception as error:  # zipfile and numpy raise many types of errors for broken bytes
            raise malformed(path, f"must hold plain arrays only: {error}") from error


def check_unpacked(path: Path, size: int, packed: int) -> None:
    """Raise an error if the unpacked size is implausibly large for the packed one."""
    if size > max(ALLOWED_SIZE, ALLOWED_RATIO * packed):
        raise malformed(path, f"must not claim more than {ALLOWED_RATIO} times its size, got {size} bytes")


def parse_npy(content: bytes) -> np.ndarray:
    """Parse the array of a `.npy` file, read-only; its size must match the header."""
    file = io.BytesIO(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about headers of old Pythons
        version = np.lib.format.read_magic(file)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in read:
            raise ValueError(f"version {version[0]}.{version[1]} of the array format is not supported")
        shape, fortran, dtype = read[version](file)
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded when allow_pickle=False")
    start = file.tell()
    if min(shape, default=0) < 0 or len(content) - start != prod(shape) * dtype.itemsize:
        raise ValueError(
            f"an array of shape {shape} and type {dtype} must not have {len(content) - start} bytes"
        )
    return np.frombuffer(content, dtype, offset=start).reshape(shape, order="F" if fortran else "C")


def _members(path: Path, archive: zipfile.ZipFile, names: Sequence[str]) -> dict[str, np.ndarray]:
    present = [name.removesuffix(".npy") for name in archive.namelist()]
    if not set(names) <= set(present):
        raise malformed(path, f"must hold the arrays {', '.join(names)}, found {', '.join(present)}")
    members = [archive.getinfo(f"{name}.npy") for name in names]
    check_unpacked(path, sum(member.file_size for member in members), path.stat().st_size)
    return {name: parse_npy(_content(archive, member)) for name, member in zip(names, members, strict=True)}


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Read all bytes, in chunks: a single read may unpack more than the member declares."""
    with archive.open(member) as file:
        return b"".join(iter(lambda: file.read(CHUNK), b""))
