"""Small files in the layout of MNIST, for the tests."""

import gzip
import struct

import numpy as np


def idx(array, kind=8):
    """The bytes of an idx file."""
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, kind, array.ndim, *array.shape) + array.tobytes()


def write_digits(folder, n_train=12, n_test=5, side=8):
    """Random pictures; the test labels are in a file without compression."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for name, n in (("train", n_train), ("t10k", n_test)):
        images = rng.integers(0, 256, size=(n, side, side), dtype=np.uint8)
        (folder / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
        labels = idx(np.arange(n, dtype=np.uint8) % 10)
        if name == "train":
            (folder / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
        else:
            (folder / "t10k-labels-idx1-ubyte").write_bytes(labels)
    return folder
