import warnings

import numpy as np
import pandas as pd
import pytest
from aeon.utils.conversion import convert_collection

from data.ragged import assert_same
from seq2tens.data import Sequences, from_aeon, from_df_list, load_dataset, to_aeon
from seq2tens.estimators import LS2TFeatures
from seq2tens.estimators.inputs import as_labels, as_sequences

CUBE = np.random.default_rng(0).normal(size=(6, 2, 5))


@pytest.mark.parametrize("kind", ["np-list", "pd-multiindex"])
def test_collections_of_aeon(kind):
    assert_same(as_sequences(convert_collection(CUBE, kind)), as_sequences(CUBE))


def test_rows_of_frames_are_steps():
    frames = [pd.DataFrame(x.T, columns=["warmth", "pressure"]) for x in CUBE]
    assert_same(as_sequences(frames), as_sequences(CUBE))
    ragged = [frame[: 2 + i] for i, frame in enumerate(frames[:3])]
    assert as_sequences(ragged).lengths.tolist() == [2, 3, 4]
    assert_same(as_sequences(frames), from_df_list(frames))


def test_the_index_of_frames_holds_times():
    index = pd.Index([0.0, 0.5, 4.0])
    assert as_sequences([pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=index)]).times.tolist() == [0, 0.5, 4]
    dates = pd.date_range("2020-01-01", periods=3)
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=dates)
    assert as_sequences([frame]).times.tolist() == [0, 86400, 2 * 86400]
    assert as_sequences([frame.tz_localize("UTC")]).times.tolist() == [0, 86400, 2 * 86400]
    with pytest.raises(TypeError, match=r"`X\[0\].index` must hold numbers, dates or durations, got str"):
        as_sequences([frame.set_axis(list("abc"))])


def test_instances_of_a_frame_keep_their_order():
    index = pd.MultiIndex.from_tuples([("b", 0), ("b", 1), ("a", 0)])
    frame = pd.DataFrame({"z": [1.0, 2.0, 3.0], "y": [4.0, 5.0, 6.0]}, index=index)
    assert [sequence.tolist() for sequence in as_sequences(frame)] == [[[1, 4], [2, 5]], [[3, 6]]]
    assert len(as_sequences(frame.loc[["a"]])) == 1


def test_one_frame_alone_is_refused():
    with pytest.raises(TypeError, match=r"got one frame of 4 rows; `\[X\]` is one sequence"):
        as_sequences(pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]}))


@pytest.mark.parametrize("kind", ["numpy2D", "np-list"])
def test_collections_of_one_channel(kind):
    assert_same(as_sequences(convert_collection(CUBE[:, :1], kind)), as_sequences(CUBE[:, :1]))


def test_vectors_are_sequences_of_one_channel():
    assert_same(as_sequences(list(CUBE[:, 0])), as_sequences(CUBE[:, :1]))


def test_masked_entries_are_missing():
    X = np.arange(24).reshape(2, 3, 4)
    masked = np.ma.masked_greater(X, 20)
    expected = np.where(X > 20, np.nan, X.astype(float))
    assert_same(as_sequences(masked), from_aeon(expected))
    assert_same(as_sequences(list(masked)), from_aeon(expected))


def test_integers_are_numbers():
    assert as_sequences((10 * CUBE).astype(int)).values.dtype == np.float64


def test_sequences_are_taken_as_they_are():
    sequences = as_sequences(CUBE)
    assert as_sequences(sequences) is sequences
    assert_same(as_sequences([sequences[i] for i in range(6)]), sequences)


@pytest.mark.parametrize(
    ("wrong", "given"),
    [
        (None, "NoneType"),
        ("abc", "str"),
        ([1, 2], "list of int"),
        (np.zeros(3), "ndarray"),
        (np.array([["a"]]), "ndarray"),
        ((CUBE[0],), "tuple"),
    ],
)
def test_other_things_are_refused(wrong, given):
    with pytest.raises(TypeError, match=rf"`X` must be an array \(n, channels, time\) .*, got {given} \("):
        as_sequences(wrong)


def test_channels_must_agree():
    with pytest.raises(ValueError, match=r"`X\[1\]` must have 2 channels like `X\[0\]`, got 3"):
        as_sequences([np.zeros((2, 3)), np.zeros((3, 3))])
    with pytest.raises(ValueError, match=r"`parts\[1\]` must have 2 channels like `parts\[0\]`, got 1"):
        as_sequences([as_sequences(CUBE), Sequences(np.zeros((1, 1)), np.array([0, 1]))])


@pytest.mark.parametrize(
    "labels",
    [["a", "b"], ["0", "1"], ["1.0", "2.0"], ["0.5", "a"], ["nan", "inf"], [1.0, 2.0], [True, False]],
)
def test_labels(labels):
    assert as_labels(labels, 2).tolist() == labels


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0.0, np.nan], "`y` must hold a label for every sequence, got nan at index 1"),
        ([None, "a"], "`y` must hold a label for every sequence, got None at index 0"),
        ([0.5, 0.25], "`y` must hold class labels, got continuous values such as 0.5"),
        (["1", "0.25"], "`y` must hold class labels, got continuous values such as 0.25"),
        ([1], "`y` must have 2 labels, one for each sequence of `X`, got 1"),
    ],
)
def test_wrong_labels(labels, message):
    with pytest.raises(ValueError, match=message):
        as_labels(labels, 2)


def fitted(X):
    return LS2TFeatures(width=2, order=1, random_state=0).fit(X)


@pytest.mark.parametrize(
    ("swapped", "remedy"),
    [
        (CUBE.transpose(0, 2, 1), r"X\.transpose\(0, 2, 1\)"),
        (list(CUBE.transpose(0, 2, 1)), r"\[x\.T for x in X\]"),
        (CUBE[:, :1].transpose(0, 2, 1), r"X\.transpose\(0, 2, 1\)"),
    ],
)
def test_fewer_steps_than_channels_are_doubted_in_training(swapped, remedy):
    steps, channels = swapped[0].shape
    message = (
        f"read as sequences of {steps} channels and {channels} steps.* {steps} steps of {channels} channels"
    )
    with pytest.warns(UserWarning, match=f"{message}, pass `{remedy}`") as seen:
        model = fitted(swapped)
    assert len(seen) == 1
    model.transform(swapped)  # the channels are those of training


@pytest.mark.parametrize(
    "clear",
    [
        CUBE,
        list(CUBE),
        CUBE[:, :, :2],  # as many steps as channels
        CUBE[:, 0],
        [x[:, :n] for x, n in zip(CUBE, (1, 1, 1, 1, 1, 5), strict=True)],  # lengths differ, channels do not
        [pd.DataFrame(x[:, :1].T) for x in CUBE],
        from_aeon(CUBE[:, :, :1]),
    ],
)
def test_nothing_else_is_doubted(clear):
    fitted(clear)


def test_the_doubt_can_be_silenced():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="`X` is read as sequences of", category=UserWarning)
        fitted(CUBE.transpose(0, 2, 1))


@pytest.mark.parametrize("name", ["BasicMotions", "JapaneseVowels"])
def test_data_sets_are_not_doubted(name):
    fitted(to_aeon(load_dataset(name).train.sequences))


def test_ragged_arrays_with_time_first_are_told():
    ragged = [np.zeros((n, 3)) for n in (4, 6)]
    wrong = r"must have 4 channels like .*, got 6; all have 3 steps: the axes must be"
    with pytest.raises(ValueError, match=rf"`X\[1\]` {wrong} \(channels, time\), transpose"):
        as_sequences(ragged)
    with pytest.raises(ValueError, match=rf"`arrays\[1\]` {wrong} \(time, channels\), transpose"):
        Sequences.from_list([x.T for x in ragged])
    with pytest.raises(
        ValueError, match="`X` must have 2 channels as in `fit`, got 5, and 2 steps: are its axes swapped"
    ):
        fitted(CUBE).transform(CUBE.transpose(0, 2, 1))
