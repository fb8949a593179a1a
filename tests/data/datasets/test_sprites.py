import lzma
import os

import numpy as np
import pytest

from seq2tens.data import ReadError, forward_imputation, mean_imputation, sprites

SHAPE = (3, 5, 2, 4, 6)


@pytest.fixture
def pictures():
    return np.random.default_rng(0).integers(0, 7, size=SHAPE, dtype=np.uint8)


@pytest.fixture
def palette():
    return np.random.default_rng(1).integers(0, 256, size=(7, 3), dtype=np.uint8)


def write(folder, pictures, palette):
    np.save(folder / sprites.PALETTE, palette)
    with lzma.open(folder / sprites.PICTURES, "wb") as file:
        np.save(file, pictures)
    return folder


@pytest.fixture
def folder(tmp_path, pictures, palette):
    (tmp_path / "sprites").mkdir()
    write(tmp_path / "sprites", pictures, palette)
    return tmp_path


def test_rows_are_characters_in_actions(folder, pictures, palette):
    data = sprites.load(folder, n_train=3)
    assert (len(data.train), len(data.test), data.test.image) == (9, 6, (4, 6, 3))
    found = data.test[[0, 3, -1]].truth.reshape(3, 2, 4, 6, 3)
    expected = palette[pictures[[0, 1, 2], [3, 4, 4]]] / np.float32(256)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.float32


def test_masks_depend_on_seed_and_sequence_only(folder):
    one, other = sprites.load(folder, n_train=3, seed=2), sprites.load(folder, n_train=1, seed=2)
    everything = one.train[:].observed
    np.testing.assert_array_equal(one.train[[4, 0]].observed, everything[[4, 0]])
    np.testing.assert_array_equal(one.test[0].observed, other.test[2].observed)
    assert not np.array_equal(one.train[0].observed, one.train[1].observed)
    assert not np.array_equal(sprites.load(folder, n_train=3, seed=3).train[:].observed, everything)
    assert sprites.load(folder, n_train=3, missing=0).train[:].observed.all()


def test_malformed_files_are_named(folder, pictures, palette):
    files = folder / "sprites"
    write(files, pictures[0], palette)
    with pytest.raises(ReadError, match=r"npy.xz: must hold bytes \(actions, characters"):
        sprites.load(folder)
    write(files, pictures, palette[:5])
    with pytest.raises(ReadError, match=r"must hold numbers of the 5 colours in palette_rgb.npy, got 6"):
        sprites.load(folder)
    write(files, pictures, palette[:, :2])
    with pytest.raises(ReadError, match=r"palette_rgb.npy: must hold bytes \(colours, 3\)"):
        sprites.load(folder)
    write(files, pictures, palette)
    content = (files / sprites.PICTURES).read_bytes()
    for broken in (content[:-20], b"no xz at all", lzma.compress(b"no array")):
        (files / sprites.PICTURES).write_bytes(broken)
        with pytest.raises(ReadError, match=r"npy.xz: must be an array as `numpy.save` writes it, in xz"):
            sprites.load(folder)
    (files / sprites.PICTURES).write_bytes(content + lzma.compress(b"more"))
    with pytest.raises(ReadError, match=r"npy.xz: must end after the array, but has more bytes"):
        sprites.load(folder)
    (files / sprites.PALETTE).unlink()
    with pytest.raises(ValueError, match=r"`folder` must hold palette_rgb.npy"):
        sprites.load(folder)


def test_refused(folder):
    with pytest.raises(ValueError, match="`n_train` must be less than the 5 characters, got 5"):
        sprites.load(folder, n_train=5)
    with pytest.raises(ValueError, match=r"`missing` must lie in 0..1, got 2"):
        sprites.load(folder, missing=2)


@pytest.mark.data("sprites")
def test_real_sprites_agree_with_published_errors():
    """Some test sequences; published: 0.013 for the mean of a sequence, 0.028 for the last value."""
    if not os.environ.get("SEQ2TENS_DATA"):
        pytest.skip("SEQ2TENS_DATA is not set")
    data = sprites.load()
    assert (len(data.train), len(data.test), data.train.image) == (9000, 2664, (64, 64, 3))
    some = data.test[::54]
    gaps, hidden = some.with_nan, some.hidden
    assert hidden.mean() == pytest.approx(0.6, abs=0.001)

    def error(filled):
        return np.square(filled - some.truth)[hidden].mean()

    assert error(mean_imputation(gaps, over="sequence")) == pytest.approx(0.013, abs=0.001)
    assert error(forward_imputation(gaps)) == pytest.approx(0.028, abs=0.001)
