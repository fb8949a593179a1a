import numpy as np
from hypothesis import given

from data.ragged import assert_same, collections
from seq2tens.data import Sequences, forward_fill
from seq2tens.data.filling import last_before, last_observed


@given(collections(min_size=1))
def test_each_entry_is_the_last_one_seen(sequences):
    initial = np.arange(1.0, sequences.n_channels + 1)
    filled = forward_fill(sequences, initial)
    assert_same(filled, sequences, ("offsets", "times", "static"))
    for found, given_ in zip(filled, sequences, strict=True):
        last = initial.astype(sequences.values.dtype)
        for step, values in zip(found, given_, strict=True):
            last = np.where(np.isnan(values), last, values)
            np.testing.assert_array_equal(step, last)


def test_nothing_missing_is_nothing_done():
    sequences = Sequences(np.ones((3, 2)), np.array([0, 3]))
    assert forward_fill(sequences) is sequences


@given(collections(min_size=1))
def test_steps_of_the_last_values_are_those_of_a_loop(sequences):
    seen = ~np.isnan(sequences.values)
    last, before = last_observed(seen, sequences.starts), last_before(seen, sequences.starts)
    for start, stop in zip(sequences.offsets[:-1], sequences.offsets[1:], strict=True):
        for channel in range(sequences.n_channels):
            known = -1
            for step in range(start, stop):
                assert before[step, channel] == known
                known = step if seen[step, channel] else known
                assert last[step, channel] == known
