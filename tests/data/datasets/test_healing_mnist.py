import os

import numpy as np
import pytest

from data.datasets.digits import write_digits
from seq2tens.data import forward_imputation, healing_mnist, mean_imputation, mnist
from seq2tens.data.datasets.healing_mnist import turned

PARTS = ("train", "validation", "test")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_digits(tmp_path_factory.mktemp("digits"))


def same(one, other):
    return np.array_equal(one.truth, other.truth) and np.array_equal(one.observed, other.observed)


def test_parts(folder):
    data = healing_mnist.load(folder)
    assert [len(getattr(data, name)) for name in PARTS] == [10, 2, 5]
    assert data.validation.labels.tolist() == [0, 1]
    chosen = data.train[[3, -1]]
    assert chosen.truth.shape == (2, 10, 64)
    assert set(np.unique(chosen.truth)) == {0, 1}
    assert chosen.labels.tolist() == [3, 9]
    assert chosen.image == data.train.image == (8, 8, 1)
    assert same(data.train[3], chosen[0])


def test_a_sequence_depends_on_seed_and_place_only(folder, monkeypatch):
    data = healing_mnist.load(folder, seed=4)
    np.random.seed(99)  # noqa: NPY002
    few = healing_mnist.load(folder, seed=4, limit=2)
    assert [len(getattr(few, name)) for name in PARTS] == [2, 2, 2]
    monkeypatch.setattr(healing_mnist, "BLOCK_SEQUENCES", 3)
    again = healing_mnist.load(folder, seed=4)
    for name in PARTS:
        assert same(getattr(data, name)[:], getattr(again, name)[:])
        assert same(getattr(data, name)[:2], getattr(few, name)[:])
    assert not same(data.train[:], healing_mnist.load(folder, seed=5).train[:])


def test_without_turning_all_frames_are_the_digit(folder):
    data = healing_mnist.load(folder, angle=0, missing=0).test[:]
    digits = mnist.load(folder).test_images.reshape(5, 1, 64) > 127
    np.testing.assert_array_equal(data.truth, np.broadcast_to(digits, (5, 10, 64)))
    assert data.observed.all()


def test_without_validation_all_training_digits_are_trained_on(folder):
    data, whole = healing_mnist.load(folder), healing_mnist.load(folder, validation=False)
    assert [len(getattr(whole, name)) for name in PARTS] == [12, 0, 5]
    assert same(whole.train[:10], data.train[:])
    assert same(whole.train[10:12], data.validation[:])
    assert same(whole.test[:], data.test[:])


def test_each_frame_is_turned_against_the_one_before():
    image = np.random.default_rng(0).integers(0, 256, size=(7, 7), dtype=np.uint8)
    frames = turned(image, np.array([90.0, 90.0, -180.0]))
    assert np.array_equal(frames, [np.rot90(image), np.rot90(image, 2), image])
    blurred, twice = turned(image, np.array([20.0, 20.0]))
    assert np.array_equal(turned(blurred, np.array([20.0]))[0], twice)
    assert not np.array_equal(turned(image, np.array([40.0]))[0], twice)


def test_turning_is_cubic():
    """A wave of ten pixels, turned: straight lines between pixels would miss it by 5 levels."""
    rows, columns = np.mgrid[-14:15, -14:15]
    angle = np.deg2rad(7)
    wave = 127 + 100 * np.sin(columns / 1.5)
    expected = 127 + 100 * np.sin((columns * np.cos(angle) - rows * np.sin(angle)) / 1.5)
    (found,) = turned(wave.round().astype(np.uint8), np.array([7.0]))
    assert np.abs(found - expected)[6:-6, 6:-6].max() < 2


def test_refused(folder):
    with pytest.raises(ValueError, match=r"`missing` must lie in 0..0.5 .*, got 0.6"):
        healing_mnist.load(folder, missing=0.6)
    with pytest.raises(ValueError, match="`seed` must be at least 0, got -1"):
        healing_mnist.load(folder, seed=-1)
    with pytest.raises(ValueError, match="`limit` must be at least 1, got 0"):
        healing_mnist.load(folder, limit=0)


@pytest.fixture(scope="module")
def thousand():
    if not os.environ.get("SEQ2TENS_DATA"):
        pytest.skip("SEQ2TENS_DATA is not set")
    return healing_mnist.load(limit=1000, validation=False).train[:]


@pytest.mark.data("mnist")
def test_white_pixels_are_missing_twice_as_often(thousand):
    missing, white = ~thousand.observed, thousand.truth == 1
    assert missing[white].mean() == pytest.approx(0.8, abs=0.002)
    assert missing[~white].mean() == pytest.approx(0.4, abs=0.002)


@pytest.mark.data("mnist")
def test_simple_imputation_is_as_good_as_published(thousand):
    gaps, hidden = thousand.with_nan, thousand.hidden

    def error(filled):
        return np.square(filled - thousand.truth)[hidden].mean()

    assert error(mean_imputation(gaps, over="sequence").round()) == pytest.approx(0.168, abs=0.004)
    assert error(forward_imputation(gaps)) == pytest.approx(0.177, abs=0.004)
