"""MNIST from its original files, in the idx format, compressed or not."""

from __future__ import annotations

import gzip
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Shaped, UInt8

from seq2tens.data.datasets._folders import dataset_folder, existing_file
from seq2tens.data.readers._text import malformed

__all__ = ["MNIST", "load", "read_idx"]

GZIP = b"\x1f\x8b"
TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


@dataclass(frozen=True, eq=False)
class MNIST:
    """Digits and their labels 0..9, in the order of the files."""

    train_images: UInt8[np.ndarray, "n height width"]
    train_labels: UInt8[np.ndarray, " n"]
    test_images: UInt8[np.ndarray, "m height width"]
    test_labels: UInt8[np.ndarray, " m"]


def load(folder: str | Path | None = None) -> MNIST:
    """Read the four files, `train-images-idx3-ubyte.gz` and so on; the suffix `.gz` may be absent.

    `folder` is the folder with the files, or with a folder `mnist` that holds them (default: the environment
    variable SEQ2TENS_DATA).
    """
    files = dataset_folder(folder, "mnist")
    return MNIST(*_read_pair(files, "train"), *_read_pair(files, "t10k"))


def read_idx(path: str | Path) -> Shaped[np.ndarray, "*shape"]:
    """Read an array from an idx file, in native byte order; gzip is detected automatically."""
    path = Path(path)
    content = _content(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in TYPES:
        raise malformed(path, f"must begin with the magic number of an idx file, got {content[:4].hex(' ')}")
    dtype, start = np.dtype(TYPES[content[2]]), 4 + 4 * content[3]
    if len(content) < start:
        raise malformed(
            path, f"must have the sizes of {content[3]} axes, but ends after {len(content)} bytes"
        )
    shape = struct.unpack(f">{content[3]}I", content[4:start])
    expected = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if len(content) - start != expected:
        reason = f"must have {expected} bytes of values for shape {shape}, got {len(content) - start}"
        raise malformed(path, reason)
    return np.frombuffer(content, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    if content[:2] != GZIP:
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise malformed(path, f"must be a complete gzip file: {error}") from error


def _read_pair(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    images_file, labels_file = (
        _file(folder, f"{name}-{kind}-ubyte") for kind in ("images-idx3", "labels-idx1")
    )
    images, labels = read_idx(images_file), read_idx(labels_file)
    if images.ndim != 3 or images.dtype != np.uint8:
        reason = f"must hold bytes with 3 axes (n, height, width), got {images.dtype} of shape {images.shape}"
        raise malformed(images_file, reason)
    if labels.shape != images.shape[:1]:
        raise malformed(
            labels_file, f"must have a label for each of {len(images)} images, got {labels.shape}"
        )
    return images, labels


def _file(folder: Path, name: str) -> Path:
    plain = folder / name
    return plain if plain.is_file() else existing_file(folder / f"{name}.gz")
