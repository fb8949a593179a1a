import numpy as np
import pytest

from seq2tens.data import Incomplete, forward_imputation, held_out, mean_imputation

NAN = np.nan
SMALL = np.array([[[1, NAN], [NAN, 4], [3, NAN]], [[NAN, NAN], [7, NAN], [NAN, NAN]]])


def test_what_is_observed_hidden_and_unknown():
    truth = np.where(np.isnan(SMALL), 9, SMALL)
    truth[1, 2, 1] = NAN
    data = Incomplete.from_array(SMALL, truth=truth, labels=[0, 1], channels=("u", "v"), image=(1, 2, 1))
    assert data.truth.dtype == data.values.dtype == np.float32
    np.testing.assert_array_equal(data.with_nan, SMALL)
    np.testing.assert_array_equal(data.values, np.nan_to_num(SMALL))
    np.testing.assert_array_equal(data.hidden, np.isnan(SMALL) & ~np.isnan(truth))
    second = data[[1]]
    np.testing.assert_array_equal(second.truth, truth[1:])
    assert (len(data), len(second), second.labels.tolist(), second.image) == (2, 1, [1], (1, 2, 1))
    assert not Incomplete.from_array(SMALL).hidden.any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"truth": np.ones((2, 3))}, "`truth` must have 3 axes"),
        ({"observed": np.ones((2, 3, 1), bool)}, "`observed` must have the shape of `truth` (2, 3, 2)"),
        ({"truth": SMALL}, "`truth` must be known where observed, got NaN at [0, 0, 1]"),
        ({"labels": [1]}, "`labels` must have shape (sequences,) = (2,), got (1,)"),
        ({"channels": ("u",)}, "`channels` must name the 2 channels of `truth`, got ('u',)"),
        ({"image": (2, 2, 1)}, "`image` must have the product 2, the channels of `truth`, got (2, 2, 1)"),
        ({"truth": np.full((2, 3, 2), np.inf)}, "got inf at sequence 0, step 0, channel 0"),
    ],
)
def test_refused(changes, message):
    fields = {"truth": np.ones((2, 3, 2)), "observed": np.ones((2, 3, 2), bool), **changes}
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        Incomplete(**fields)
    assert message in str(raised.value)


def test_masks_are_boolean():
    with pytest.raises(TypeError, match="`observed` must be boolean"):
        Incomplete(np.ones((1, 1, 1)), np.ones((1, 1, 1)))


@pytest.mark.parametrize("fraction", [0, 0.3, 1])
def test_as_many_as_asked_are_held_out(fraction):
    X = np.random.default_rng(0).normal(size=(20, 5, 4)).astype(np.float32)
    X[:, :, 1] = NAN
    before = X.copy()
    gaps, hidden = held_out(X, fraction, np.random.default_rng(1))
    np.testing.assert_array_equal(X, before)
    assert gaps.dtype == np.float32
    assert hidden.sum() == round(fraction * 300)
    np.testing.assert_array_equal(np.isnan(gaps), np.isnan(X) | hidden)
    np.testing.assert_array_equal(gaps[~hidden], X[~hidden])
    assert not hidden[:, :, 1].any()
    np.testing.assert_array_equal(held_out(X, fraction, np.random.default_rng(1))[1], hidden)


def test_every_entry_has_the_same_chance():
    counts = sum(held_out(np.zeros(10), 0.3, np.random.default_rng(i))[1].astype(int) for i in range(2000))
    assert abs(counts - 600).max() < 5 * np.sqrt(2000 * 0.3 * 0.7)


def test_held_out_refuses():
    with pytest.raises(ValueError, match=r"`fraction` must lie in 0..1, got 1.5"):
        held_out(SMALL, 1.5, np.random.default_rng())
    with pytest.raises(TypeError, match=r"`generator` must be a numpy.random.Generator, got int"):
        held_out(SMALL, 0.5, 0)


def test_forward_imputation():
    expected = [[[1, 0], [1, 4], [3, 4]], [[0, 0], [7, 0], [7, 0]]]
    np.testing.assert_array_equal(forward_imputation(SMALL), expected)
    assert forward_imputation(SMALL, initial=[5, 6])[1, 0].tolist() == [5, 6]


def test_mean_imputation():
    mean = 11 / 3
    np.testing.assert_allclose(
        mean_imputation(SMALL), [[[1, 4], [mean, 4], [3, 4]], [[mean, 4], [7, 4], [mean, 4]]]
    )
    np.testing.assert_array_equal(
        mean_imputation(SMALL, over="sequence"), [[[1, 4], [2, 4], [3, 4]], [[7, 0], [7, 0], [7, 0]]]
    )
    reference = np.array([[[10, NAN]]])
    assert mean_imputation(SMALL, reference)[1, 0].tolist() == [10, 0]
    with pytest.raises(ValueError, match="`over` must be one of 'data', 'sequence', got 'time'"):
        mean_imputation(SMALL, over="time")
    with pytest.raises(ValueError, match="`reference` must be None if `over` is 'sequence', got an array"):
        mean_imputation(SMALL, reference, over="sequence")
