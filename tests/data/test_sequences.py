import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.ragged import assert_same, collections
from seq2tens.data import Labelled, Sequences, Split

VALUES = np.arange(12.0).reshape(6, 2)
OFFSETS = np.array([0, 2, 2, 6])


@given(collections())
def test_iteration_and_packing_are_inverse(sequences):
    assert [len(sequence) for sequence in sequences] == sequences.lengths.tolist()
    assert all(sequence.shape[1] == sequences.n_channels for sequence in sequences)
    if len(sequences):
        times = None
        if sequences.times is not None:
            times = np.split(sequences.times, sequences.offsets[1:-1])
        assert_same(Sequences.from_list(list(sequences), times, sequences.static), sequences)


@given(collections(min_size=1), st.data())
def test_indexing_picks_sequences(sequences, data):
    n = len(sequences)
    rows = data.draw(st.lists(st.integers(-n, n - 1), max_size=8))
    picked = sequences[rows]
    everything = list(sequences)
    assert len(picked) == len(rows)
    for row, sequence in zip(rows, picked, strict=True):
        np.testing.assert_array_equal(sequence, everything[row])
    if sequences.static is not None:
        np.testing.assert_array_equal(picked.static, sequences.static[np.array(rows, dtype=int)])
    mask = np.isin(np.arange(n), np.array(rows) % n)
    assert_same(sequences[mask], sequences[np.flatnonzero(mask)])
    assert_same(sequences[-1], sequences[[n - 1]])


@given(collections(), st.slices(6))
def test_slices_are_rows(sequences, rows):
    assert_same(sequences[rows], sequences[np.arange(len(sequences))[rows]])


@given(collections(min_size=2))
def test_concatenate_undoes_slicing(sequences):
    assert_same(Sequences.concatenate([sequences[:1], sequences[1:1], sequences[1:]]), sequences)


def test_is_immutable_and_does_not_copy():
    sequences = Sequences(VALUES, OFFSETS)
    assert np.shares_memory(sequences.values, VALUES)
    assert np.shares_memory(sequences[1:].values, VALUES)
    assert VALUES.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        sequences.values[0, 0] = 1
    with pytest.raises(AttributeError):
        sequences.values = VALUES
    assert_same(pickle.loads(pickle.dumps(sequences)), sequences)


def test_repr_tells_the_size():
    sequences = Sequences(VALUES, OFFSETS, np.arange(6))
    assert repr(sequences) == "Sequences(3, channels=2, lengths=0–4, float64, times)"
    assert repr(sequences[:0]) == "Sequences(0, channels=2, lengths=none, float64, times)"


INFINITE = np.where(VALUES == 7, -np.inf, VALUES)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((VALUES.astype(int), OFFSETS), TypeError, "`values` must have a floating-point dtype, got int64"),
        (
            (VALUES[0], OFFSETS),
            ValueError,
            "`values` must have 2 axes (total_steps, channels), got 1 with shape (2,)",
        ),
        ((VALUES[:, :0], OFFSETS), ValueError, "`values` must have at least one channel, got shape (6, 0)"),
        ((VALUES, OFFSETS * 1.0), TypeError, "`offsets` must be integers, got dtype float64"),
        ((VALUES, OFFSETS[:0]), ValueError, "`offsets` must have shape (n + 1,), got (0,)"),
        ((VALUES, OFFSETS + 1), ValueError, "`offsets` must begin with 0, got 1"),
        ((VALUES, [0, 4, 3, 6]), ValueError, "`offsets` must not decrease, got 3 after 4 at index 2"),
        ((VALUES, [0, 5]), ValueError, "`offsets` must end with 6 (the steps of `values`), got 5"),
        (
            (INFINITE, OFFSETS),
            ValueError,
            "`values` must be finite, or NaN where missing, got -inf at sequence 2, step 1, channel 1",
        ),
        (
            (VALUES, OFFSETS, np.zeros(5)),
            ValueError,
            "`times` must have shape (total_steps,) = (6,), got (5,)",
        ),
        (
            (VALUES, OFFSETS, [0, 1, 0, 1, np.nan, 2]),
            ValueError,
            "`times` must be finite, got nan at sequence 2, step 2",
        ),
        (
            (VALUES, OFFSETS, [0, 1, 0, 3, 2, 4]),
            ValueError,
            "`times` must not decrease within a sequence, got 2.0 after 3.0 at sequence 2, step 2",
        ),
        ((VALUES, OFFSETS, list("abcdef")), TypeError, "`times` must hold real numbers, got dtype <U1"),
        (
            (VALUES, OFFSETS, None, np.zeros((2, 1))),
            ValueError,
            "`static` must have shape (sequences, features) = (3, k), got (2, 1)",
        ),
        (
            (VALUES, OFFSETS, None, [[0], [np.inf], [0]]),
            ValueError,
            "`static` must be finite, or NaN where unknown, got inf at sequence 1, feature 0",
        ),
    ],
)
def test_errors_name_argument_rule_and_value(arguments, error, message):
    with pytest.raises(error) as raised:
        Sequences(*arguments)
    assert str(raised.value) == message


def raises(error, message, call):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == message


def test_errors_of_indexing():
    sequences = Sequences(VALUES, OFFSETS)
    raises(IndexError, "`rows` must lie in -3..2 (3 sequences), got 3", lambda: sequences[3])
    raises(TypeError, "`rows` must be integers or booleans, got dtype float64", lambda: sequences[[0.5]])
    raises(ValueError, "`rows` as a mask must have 3 entries, got 1", lambda: sequences[[True]])


def test_errors_of_joining():
    one = Sequences(VALUES, OFFSETS)
    with_times = Sequences(VALUES, OFFSETS, np.arange(6))
    wide = Sequences(np.zeros((1, 3)), np.array([0, 1]))
    raises(
        ValueError,
        "`parts[1]` must have 2 channels like `parts[0]`, got 3",
        lambda: Sequences.concatenate([one, wide]),
    )
    raises(
        ValueError,
        "`parts` must all have `times` or none of them, but `parts[1]` differs from `parts[0]`",
        lambda: Sequences.concatenate([one, with_times]),
    )
    raises(
        ValueError,
        "`arrays[1]` must have 2 axes (time, channels), got 1 with shape (4,)",
        lambda: Sequences.from_list([np.zeros((2, 2)), np.zeros(4)]),
    )
    raises(
        ValueError,
        "`times[0]` must have shape (2,), got (3,)",
        lambda: Sequences.from_list([np.zeros((2, 2))], [np.zeros(3)]),
    )


def test_labels_go_with_their_sequences():
    labelled = Labelled(Sequences(VALUES, OFFSETS), np.array(["a", "b", "c"]))
    assert len(labelled) == 3
    assert labelled[[2, 0]].labels.tolist() == ["c", "a"]
    assert labelled[1].labels.tolist() == ["b"]
    assert labelled[1:].labels.tolist() == ["b", "c"]
    assert Labelled(labelled.sequences)[0].labels is None
    named = Labelled(labelled.sequences, ids=[7, 8, 9], channels=("x", "y"))[[2, 0]]
    assert named.ids.tolist() == [9, 7]
    assert named.channels == ("x", "y")
    raises(
        ValueError,
        "`labels` must have shape (sequences,) = (3,), got (2,)",
        lambda: Labelled(labelled.sequences, [1, 2]),
    )
    raises(
        ValueError,
        "`channels` must name the 2 channels of `sequences`, got ('x',)",
        lambda: Labelled(labelled.sequences, channels=("x",)),
    )


def test_split_unpacks_and_agrees_on_channels():
    one = Labelled(Sequences(VALUES, OFFSETS))
    train, test = Split(one[:2], one[2:])
    assert (len(train), len(test)) == (2, 1)
    wide = Labelled(Sequences(np.zeros((1, 3)), np.array([0, 1])))
    raises(ValueError, "`test` must have the 2 channels of `train`, got 3", lambda: Split(one, wide))


def test_positions_count_the_steps_of_each_sequence():
    sequences = Sequences(np.zeros((6, 2)), np.array([0, 3, 3, 5, 6]))
    assert sequences.positions.tolist() == [0, 1, 2, 0, 1, 0]
