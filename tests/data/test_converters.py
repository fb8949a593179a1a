import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from data.ragged import assert_same, collections
from seq2tens.data import (
    Labelled,
    Sequences,
    from_aeon,
    from_df_list,
    from_multiindex,
    from_padded,
    from_pypots,
    to_aeon,
    to_df_list,
    to_multiindex,
    to_padded,
    to_pypots,
)

PACKED = ("values", "offsets")
RAGGED = Sequences(np.arange(10.0).reshape(5, 2), np.array([0, 3, 5]))


@given(collections(extras=False))
def test_aeon_round_trip(sequences):
    X = to_aeon(sequences)
    assert isinstance(X, np.ndarray) == (len(set(sequences.lengths)) <= 1)
    assert_same(from_aeon(X), sequences)


def test_aeon_has_channels_before_time():
    X = to_aeon(RAGGED)
    assert [x.shape for x in X] == [(2, 3), (2, 2)]
    assert X[0].tolist() == [[0, 2, 4], [1, 3, 5]]
    cube = np.arange(12).reshape(2, 3, 2)
    np.testing.assert_array_equal(list(from_aeon(cube))[1], cube[1].T)
    assert from_aeon(cube).values.dtype == np.float64


@given(collections(min_size=1))
def test_df_list_round_trip(sequences):
    assert_same(from_df_list(to_df_list(sequences)), sequences, (*PACKED, "times"))


@given(collections(min_length=1, min_size=1))
def test_multiindex_round_trip(sequences):
    assert_same(from_multiindex(to_multiindex(sequences)), sequences, (*PACKED, "times"))


def test_frames_are_as_sktime_has_them():
    frame = to_multiindex(RAGGED)
    assert list(frame.columns) == ["var_0", "var_1"]
    assert list(frame.index) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert list(frame.index.names) == ["instances", "timepoints"]
    assert [list(part.index) for part in to_df_list(RAGGED)] == [[0, 1, 2], [0, 1]]


def test_multiindex_keeps_the_order_of_any_instances():
    index = pd.MultiIndex.from_tuples([("b", 2), ("b", 5), ("a", 1)])
    sequences = from_multiindex(pd.DataFrame({"x": [1, 2, 3]}, index=index))
    assert [sequence.ravel().tolist() for sequence in sequences] == [[1, 2], [3]]
    assert sequences.times.tolist() == [2, 5, 1]


@given(collections(extras=False))
def test_padded_round_trip(sequences):
    ends = sequences.offsets[1:][sequences.lengths > 0] - 1
    values = sequences.values.copy()
    values[ends] = np.nan_to_num(values[ends])
    complete = Sequences(values, sequences.offsets)
    padded = to_padded(complete)
    assert padded.shape == (len(complete), complete.lengths.max(initial=0), complete.n_channels)
    assert_same(from_padded(padded), complete)


def test_padded_keeps_gaps_inside():
    X = np.array([[[np.nan], [1], [np.nan], [2], [np.nan]], [[np.nan]] * 5])
    assert from_padded(X).lengths.tolist() == [4, 0]


@given(collections(extras=False, equal=True))
def test_pypots_round_trip(sequences):
    labels = np.arange(len(sequences))
    data = to_pypots(Labelled(sequences, labels))
    assert sorted(data) == ["X", "y"]
    back = from_pypots(data)
    assert_same(back.sequences, sequences)
    np.testing.assert_array_equal(back.labels, labels)
    assert from_pypots({"X": data["X"]}).labels is None


@given(collections(extras=False))
def test_pypots_arrays_come_back_as_they_were(sequences):
    X = to_pypots(Labelled(sequences))["X"]
    np.testing.assert_array_equal(to_pypots(from_pypots({"X": X}))["X"], X)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: from_aeon(np.zeros((2, 3))),
            ValueError,
            "`X` must have 3 axes (n, channels, time), got 2 with shape (2, 3)",
        ),
        (
            lambda: from_aeon([]),
            ValueError,
            "`X` must hold at least one sequence (it gives the number of channels), got none",
        ),
        (
            lambda: from_aeon([np.zeros((2, 3)), np.zeros((3, 2))]),
            ValueError,
            "`X[1]` must have 2 channels like `X[0]`, got 3",
        ),
        (lambda: from_aeon(np.array([[["a"]]])), TypeError, "`X` must hold real numbers, got dtype <U1"),
        (
            lambda: to_padded(Sequences(np.array([[1.0], [np.nan]]), np.array([0, 2]))),
            ValueError,
            "`sequences` must not end with a step that is all NaN (the padding), but sequence 0 does",
        ),
        (
            lambda: from_pypots({"y": [1]}),
            ValueError,
            '`data` must have the key "X", optionally "y", got [\'y\']',
        ),
        (
            lambda: from_df_list([pd.DataFrame({"a": [1.0]}), pd.DataFrame({"b": [1.0]})]),
            ValueError,
            "`frames[1]` must have the columns ['a'] of `frames[0]`, got ['b']",
        ),
        (
            lambda: from_df_list([pd.DataFrame({"a": [1.0]}, index=list("x"))]),
            TypeError,
            "`frames[0].index` must hold numbers, dates or durations, got str",
        ),
        (
            lambda: from_multiindex(pd.DataFrame({"a": [1.0]})),
            ValueError,
            "`frame.index` must have 2 levels (instance, time), got 1",
        ),
        (
            lambda: from_multiindex(to_multiindex(RAGGED).iloc[[0, 3, 1]]),
            ValueError,
            "`frame` must keep the rows of an instance together, but those of 0 are apart",
        ),
        (
            lambda: to_multiindex(Sequences(np.zeros((1, 1)), np.array([0, 1, 1]))),
            ValueError,
            "`sequences` must all have steps (rows of the frame), but sequence 1 has none",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == message
