import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.ragged import assert_same, collections
from seq2tens.data import Preparation, Scaler, Sequences, forward_fill

NAN = np.nan


def one(*steps, times=None, static=None):
    """A single sequence."""
    values = np.array(steps, dtype=float)
    return Sequences(values, np.array([0, len(values)]), times, static)


@given(collections(min_size=1, min_length=1), st.sampled_from(["channel", "sequence", None]))
def test_channels_without_gaps(sequences, scaling):
    prepared = Preparation(scaling).fit(sequences)
    result = prepared.transform(sequences)
    assert result.values.dtype == np.float32
    assert result.n_channels == prepared.n_outputs
    assert result.times is None
    assert result.static is None
    assert np.isfinite(result.values).all()
    np.testing.assert_array_equal(result.offsets, sequences.offsets)


@given(collections(min_size=1, min_length=1), st.sampled_from(["channel", "sequence", None]))
def test_state_goes_through_json(sequences, scaling):
    prepared = Preparation(scaling).fit(sequences)
    again = Preparation.from_state(json.loads(json.dumps(prepared.state())))
    assert_same(again.transform(sequences), prepared.transform(sequences))
    assert (again.n_channels, again.n_outputs) == (prepared.n_channels, prepared.n_outputs)


@given(collections(min_size=2, min_length=1))
def test_rows_are_prepared_each_by_itself(sequences):
    prepared = Preparation().fit(sequences)
    parts = [prepared.transform(sequences[i]) for i in range(len(sequences))]
    assert_same(prepared.transform(sequences), Sequences.concatenate(parts))


def test_without_gaps_it_is_the_scaler():
    sequences = one([1.0, 5.0], [2.0, 9.0])
    assert_same(
        Preparation().fit(sequences).transform(sequences), Scaler().fit(sequences).transform(sequences)
    )


def test_gaps_are_filled_after_scaling_and_marked():
    train = one([NAN, 1.0], [0.0, NAN], [2.0, 3.0])
    prepared = Preparation().fit(train)
    assert prepared.mask
    # statistics of observed entries: mean 1 and deviation 1, mean 2 and deviation 1
    expected = [[0, -1, 0, 1], [-1, -1, 1, 0], [1, 1, 1, 1]]
    np.testing.assert_allclose(prepared.transform(train).values, expected)


def test_gaps_that_come_later_are_filled_without_a_mark():
    prepared = Preparation().fit(one([0.0], [2.0]))
    np.testing.assert_allclose(prepared.transform(one([NAN], [2.0], [NAN])).values, [[0], [1], [1]])


def test_unscaled_gaps_are_filled_with_the_mean_of_training():
    prepared = Preparation(None).fit(one([1.0], [3.0]))
    np.testing.assert_allclose(prepared.transform(one([NAN], [7.0], [NAN])).values, [[2], [7], [7]])


def test_a_channel_never_seen_stays_missing():
    prepared = Preparation().fit(one([NAN, 0.0], [NAN, 2.0]))
    expected = [[0, -1, 0, 1], [0, 1, 0, 1]]
    np.testing.assert_allclose(prepared.transform(one([1e6, 0.0], [-3.0, 2.0])).values, expected)


def test_times_count_from_the_first_step():
    train = one([0.0], [0.0], [0.0], times=[10.0, 11.0, 15.0])
    prepared = Preparation(None).fit(train)
    elapsed = np.array([0, 1, 5])
    expected = (elapsed - elapsed.mean()) / elapsed.std()
    np.testing.assert_allclose(prepared.transform(train).values[:, 1], expected, rtol=1e-6)
    later = one([0.0], [0.0], [0.0], times=[1000.0, 1001.0, 1005.0])
    np.testing.assert_allclose(prepared.transform(later).values[:, 1], expected, rtol=1e-6)


def test_static_features_stand_at_every_step():
    static = np.array([[1.0, 5.0], [3.0, NAN]])
    train = Sequences(np.zeros((5, 1)), np.array([0, 2, 5]), static=static)
    expected = [[-1, 0]] * 2 + [[1, 0]] * 3
    np.testing.assert_allclose(Preparation().fit(train).transform(train).values[:, 1:], expected)


@pytest.mark.parametrize(
    ("later", "message"),
    [
        (one([1.0, 2.0]), "`sequences` must have 1 channels as in `fit`, got 2"),
        (one([1.0], static=[[1.0]]), r"`sequences.times` must be given as in `fit` \(some\), got none"),
        (one([1.0], times=[0.0]), r"`sequences.static` must be given as in `fit` \(some\), got none"),
        (
            one([1.0], times=[0.0], static=[[1.0, 2.0]]),
            "`sequences.static` must have 1 features as in `fit`, got 2",
        ),
    ],
)
def test_what_differs_from_training_is_refused(later, message):
    prepared = Preparation().fit(one([1.0], times=[0.0], static=[[1.0]]))
    with pytest.raises(ValueError, match=message):
        prepared.transform(later)


def test_columns_say_what_each_channel_is():
    values = [("value", 0), ("value", 1)]
    assert list(Preparation().fit(one([1.0, 2.0])).columns) == values
    gappy = one([1.0, NAN], [2.0, 3.0], times=[0.0, 1.0], static=[[5.0, 6.0]])
    full = Preparation(since_observed=True).fit(gappy)
    others = [("observed", 0), ("observed", 1), ("since", 0), ("since", 1), ("time", 0)]
    assert list(full.columns) == [*values, *others, ("static", 0), ("static", 1)]
    prepared = full.transform(gappy)
    assert prepared.n_channels == full.n_outputs == len(full.columns)
    assert prepared.values[:, full.columns.index(("observed", 1))].tolist() == [0, 1]
    assert Preparation().columns == ()


def test_wrong_use():
    with pytest.raises(ValueError, match="`transform` needs `fit` first"):
        Preparation().transform(one([1.0]))
    with pytest.raises(ValueError, match="`scaling` must be one of 'channel', 'sequence', None, got 'both'"):
        Preparation("both")
    with pytest.raises(ValueError, match="`state` must have the keys"):
        Preparation.from_state({})


def test_training_is_not_changed():
    sequences = one([NAN, 1.0], [0.0, NAN])
    before = sequences.values.copy()
    Preparation().fit(sequences).transform(sequences)
    np.testing.assert_array_equal(sequences.values, before)
    assert forward_fill(sequences).values[1, 1] == 1.0
