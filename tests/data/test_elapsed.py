"""The time since a channel was last observed, and all that a `Preparation` does, compared with loops."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.ragged import assert_same, collections
from seq2tens.data import Preparation, Sequences, since_observed, since_start

NAN = np.nan


def one(*steps, times=None):
    values = np.array(steps, dtype=float)
    return Sequences(values, np.array([0, len(values)]), times)


def slow_since_observed(sequences):
    """GRU-D's recursion: 0, then the gap, plus what was there before unless the channel was just observed."""
    parts = []
    for i, values in enumerate(sequences):
        start, stop = sequences.offsets[i : i + 2]
        times = np.arange(stop - start) if sequences.times is None else sequences.times[start:stop]
        since = np.zeros(values.shape)
        for t in range(1, len(values)):
            for c in range(values.shape[1]):
                carried = since[t - 1, c] if np.isnan(values[t - 1, c]) else 0.0
                since[t, c] = times[t] - times[t - 1] + carried
        parts.append(since)
    return np.concatenate([np.zeros((0, sequences.n_channels)), *parts])


@given(collections())
def test_since_observed_is_the_recursion(sequences):
    found = since_observed(sequences)
    np.testing.assert_array_equal(found.offsets, sequences.offsets)
    np.testing.assert_allclose(found.values, slow_since_observed(sequences), rtol=1e-12, atol=1e-12)


def test_since_observed_by_hand():
    sequences = one([1, NAN], [NAN, NAN], [NAN, 2], [3, 4], [NAN, NAN], times=[1, 1.5, 4, 5, 9])
    expected = [[0, 0], [0.5, 0.5], [3, 3], [4, 1], [4, 4]]
    np.testing.assert_array_equal(since_observed(sequences).values, expected)
    counted = Sequences(sequences.values, sequences.offsets)
    np.testing.assert_array_equal(since_observed(counted).values, [[0, 0], [1, 1], [2, 2], [3, 1], [1, 1]])


def test_steps_of_another_sequence_do_not_count():
    sequences = Sequences(np.array([[1.0], [NAN], [NAN]]), np.array([0, 1, 3]), np.array([8.0, 0.0, 2.0]))
    np.testing.assert_array_equal(since_observed(sequences).values, [[0], [0], [2]])
    np.testing.assert_array_equal(since_start(sequences).values, [[0], [0], [2]])


def standardized(train, rows):
    """Columns of `rows` by the statistics of what is known in the columns of `train`."""
    result = np.array(rows, dtype=np.float64)
    for c in range(result.shape[1]):
        known = train[~np.isnan(train[:, c]), c].astype(np.float64)
        if len(known):
            spread = known.std() if known.min() < known.max() else 1.0
            result[:, c] = (result[:, c] - known.mean()) / spread
    return result


def slow_preparation(train, sequences):
    """Values, observed, since, time and static features of the sequences, step by step."""
    values = standardized(train.values, sequences.values)
    values[:, np.isnan(train.values).all(axis=0)] = NAN
    masked = [
        Sequences(np.where(np.isnan(train.values).all(axis=0), NAN, s.values), s.offsets, s.times)
        for s in (train, sequences)
    ]
    since = standardized(*map(slow_since_observed, masked))
    clock = (
        None if train.times is None else standardized(*(since_start(s).values for s in (train, sequences)))
    )
    static = None if train.static is None else np.nan_to_num(standardized(train.static, sequences.static))
    rows = []
    for i, (start, stop) in enumerate(zip(sequences.offsets[:-1], sequences.offsets[1:], strict=True)):
        last = np.zeros(sequences.n_channels)
        for step in range(start, stop):
            last = np.where(np.isnan(values[step]), last, values[step])
            row = [last, ~np.isnan(values[step])] if np.isnan(train.values).any() else [last]
            row += [since[step]] + ([] if clock is None else [clock[step]])
            rows.append(np.concatenate(row + ([] if static is None else [static[i]])))
    return np.array(rows)


def same_fields(train, later):
    """`later` with the channels and fields of `train`."""
    n, steps = len(later), len(later.values)
    values = np.resize(later.values, (steps, train.n_channels))
    times = None if train.times is None else np.arange(steps) ** 1.5
    static = None if train.static is None else np.full((n, train.static.shape[1]), 2.0)
    return Sequences(values, later.offsets, times, static)


@given(collections(min_size=1, min_length=1), collections(min_size=1, min_length=1))
def test_the_whole_preparation_is_that_of_loops(train, later):
    prepared = Preparation(since_observed=True).fit(train)
    for sequences in (train, same_fields(train, later)):
        found = prepared.transform(sequences)
        assert found.n_channels == prepared.n_outputs
        np.testing.assert_allclose(found.values, slow_preparation(train, sequences), rtol=1e-4, atol=1e-4)


@given(collections(min_size=1, min_length=1), st.sampled_from(["channel", "sequence", None]))
def test_what_is_added_stands_between_mask_and_time(sequences, scaling):
    plain, more = (Preparation(scaling, since).fit(sequences) for since in (False, True))
    before = sequences.n_channels * (1 + plain.mask)
    without = np.delete(more.transform(sequences).values, before + np.arange(sequences.n_channels), axis=1)
    np.testing.assert_array_equal(without, plain.transform(sequences).values)
    kinds = [kind for kind, _ in more.columns]
    assert kinds[before : before + sequences.n_channels] == ["since"] * sequences.n_channels


@given(collections(min_size=1, min_length=1), st.booleans())
def test_state_goes_through_json(sequences, since):
    prepared = Preparation(since_observed=since).fit(sequences)
    again = Preparation.from_state(json.loads(json.dumps(prepared.state())))
    assert again.since_observed == since
    assert again.columns == prepared.columns
    assert_same(again.transform(sequences), prepared.transform(sequences))


def test_states_from_before_are_read():
    prepared = Preparation().fit(one([1.0], [NAN]))
    assert set(prepared.state()) == {"scaling", "scaler", "fill", "known", "mask", "clock", "static"}


def test_a_channel_never_seen_in_training_counts_as_missing_later():
    prepared = Preparation(None, since_observed=True).fit(one([NAN, 0.0], [NAN, 2.0], [NAN, 2.0]))
    later = one([5.0, 1.0], [5.0, 1.0], [5.0, 1.0])
    since = prepared.transform(later).values[:, 4:]
    # 0, 1, 2 steps for what is never seen, 0, 1, 1 for what always is; both standardised
    np.testing.assert_allclose(since[:, 0], (np.arange(3) - 1) / np.arange(3).std(), rtol=1e-6)
    np.testing.assert_allclose(since[:, 1], (np.array([0, 1, 1]) - 2 / 3) / np.std([0, 1, 1]), rtol=1e-6)


def test_sequences_of_one_step():
    train = Sequences(np.array([[1.0], [3.0]]), np.arange(3), np.array([7.0, 9.0]))
    found = Preparation(since_observed=True).fit(train).transform(train)
    np.testing.assert_array_equal(found.values, [[-1, 0, 0], [1, 0, 0]])


def test_wrong_use():
    with pytest.raises(ValueError, match="`since_observed` must be one of True, False, got 'yes'"):
        Preparation(since_observed="yes")
