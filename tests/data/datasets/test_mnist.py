import gzip
import os

import numpy as np
import pytest

from data.datasets.digits import idx, write_digits
from seq2tens.data import ReadError, mnist


@pytest.mark.parametrize(
    ("kind", "dtype"), [(8, "u1"), (9, "i1"), (11, ">i2"), (12, ">i4"), (13, ">f4"), (14, ">f8")]
)
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_all_types_are_read(tmp_path, kind, dtype, compress):
    array = np.arange(-6, 6).reshape(2, 3, 2).astype(dtype)
    (tmp_path / "file").write_bytes(compress(idx(array, kind)))
    found = mnist.read_idx(tmp_path / "file")
    assert found.dtype == np.dtype(dtype).newbyteorder("=")
    np.testing.assert_array_equal(found, array)


WHOLE = idx(np.zeros((2, 3), dtype=np.uint8))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "must begin with the magic number of an idx file"),
        (b"\x89PNG....", "must begin with the magic number of an idx file, got 89 50 4e 47"),
        (b"\0\0\x07\x01", "must begin with the magic number"),
        (WHOLE[:7], "must have the sizes of 2 axes, but ends after 7 bytes"),
        (WHOLE[:-1], r"must have 6 bytes of values for shape (2, 3), got 5"),
        (WHOLE + b"\0", r"must have 6 bytes of values for shape (2, 3), got 7"),
        (gzip.compress(WHOLE)[:-9], "must be a complete gzip file"),
        (b"\x1f\x8b" + bytes(30), "must be a complete gzip file"),
    ],
    ids=["empty", "other magic", "other type", "no sizes", "short", "long", "cut gzip", "no gzip"],
)
def test_malformed_files_are_named(tmp_path, content, reason):
    path = tmp_path / "bad.gz"
    path.write_bytes(content)
    with pytest.raises(ReadError) as raised:
        mnist.read_idx(path)
    assert str(raised.value).startswith(f"{path}: {reason}")


def test_folder(tmp_path, monkeypatch):
    write_digits(tmp_path / "mnist")
    digits = mnist.load(tmp_path)
    assert (digits.train_images.shape, digits.test_images.shape) == ((12, 8, 8), (5, 8, 8))
    assert digits.test_labels.tolist() == [0, 1, 2, 3, 4]
    monkeypatch.setenv("SEQ2TENS_DATA", str(tmp_path / "mnist"))
    np.testing.assert_array_equal(mnist.load().train_images, digits.train_images)


def test_images_and_labels_must_fit(tmp_path):
    write_digits(tmp_path)
    labels = tmp_path / "train-labels-idx1-ubyte.gz"
    labels.write_bytes(idx(np.zeros(3, dtype=np.uint8)))
    with pytest.raises(ReadError, match=r"labels-idx1-ubyte.gz: must have a label for each of 12 images"):
        mnist.load(tmp_path)
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(idx(np.zeros(3, dtype=np.uint8)))
    with pytest.raises(ReadError, match="must hold bytes with 3 axes"):
        mnist.load(tmp_path)
    labels.unlink()
    with pytest.raises(ValueError, match=r"`folder` must hold train-labels-idx1-ubyte.gz"):
        mnist.load(tmp_path)


@pytest.mark.data("mnist")
def test_real_digits():
    if not os.environ.get("SEQ2TENS_DATA"):
        pytest.skip("SEQ2TENS_DATA is not set")
    digits = mnist.load()
    assert (digits.train_images.shape, digits.test_images.shape) == ((60_000, 28, 28), (10_000, 28, 28))
    assert digits.train_labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert digits.test_labels[:5].tolist() == [7, 2, 1, 0, 4]
