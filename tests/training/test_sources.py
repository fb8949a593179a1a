import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from data.ragged import collections
from seq2tens.data import Sequences, collate, forward_fill
from seq2tens.training import SequenceSource, Subset


@given(collections(min_size=1, extras=False), st.integers(0, 100))
def test_batches_are_those_of_collate(sequences, seed):
    whole = forward_fill(sequences)
    if len(whole.values) == 0:
        return
    source = SequenceSource(whole)
    rows = torch.randint(len(whole), (5,), generator=torch.Generator().manual_seed(seed))
    found, expected = source.batch(rows), collate(whole, rows.numpy())
    assert_close(found.values, expected.values, rtol=0, atol=0)
    longest = found.values.shape[1]
    assert_close(torch.full((5,), longest) if found.lengths is None else found.lengths, expected.lengths)
    assert (found.lengths is None) == bool((expected.lengths == longest).all())


def ragged():
    return Sequences(np.arange(12.0).reshape(6, 2), np.array([0, 1, 4, 6]))


def test_labels_and_weights_go_along():
    source = SequenceSource(ragged(), torch.tensor([5, 6, 7]), torch.tensor([0.5, 1.0, 1.5]))
    batch = source.batch(torch.tensor([2, 0]))
    assert batch.labels.tolist() == [7, 5]
    assert batch.weights.tolist() == [1.5, 0.5]
    assert SequenceSource(ragged()).batch(torch.tensor([0])).labels is None
    assert source.lengths.tolist() == [1, 3, 2]


def test_batches_share_no_memory_with_the_data():
    source = SequenceSource(ragged())
    source.batch(torch.tensor([1])).values.zero_()
    assert source.batch(torch.tensor([1])).values.sum() > 0


@pytest.mark.parametrize(
    "sequences",
    [
        Sequences(np.array([[np.nan]]), np.array([0, 1])),
        Sequences(np.ones((1, 1)), np.array([0, 1]), times=np.zeros(1)),
        Sequences(np.ones((1, 1)), np.array([0, 1]), static=np.zeros((1, 1))),
    ],
)
def test_sequences_must_be_prepared(sequences):
    with pytest.raises(ValueError, match="no times, no static features and no missing entries"):
        SequenceSource(sequences)


def test_rows_must_agree():
    with pytest.raises(ValueError, match="`labels` must have 3 rows, got 2"):
        SequenceSource(ragged(), torch.zeros(2))
    with pytest.raises(ValueError, match="`weights` must have 3 rows, got 1"):
        SequenceSource(ragged(), torch.zeros(3), torch.zeros(1))


def test_digests_tell_data_apart():
    values, offsets = ragged().values, ragged().offsets
    labels, weights = torch.tensor([0, 1, 0]), torch.tensor([1.0, 2.0, 0.0])
    whole = SequenceSource(ragged(), labels, weights)
    others = [
        SequenceSource(Sequences(values + 1, offsets), labels, weights),
        SequenceSource(Sequences(values, np.array([0, 2, 4, 6])), labels, weights),
        SequenceSource(ragged(), 1 - labels, weights),
        SequenceSource(ragged(), labels, weights + 1),
        SequenceSource(ragged(), labels),
        Subset(whole, torch.tensor([0, 1, 2])),
        Subset(whole, torch.tensor([0, 1])),
    ]
    digests = [source.digest for source in (whole, *others)]
    assert len(set(digests)) == len(digests)
    assert SequenceSource(ragged(), labels, weights).digest == whole.digest
    assert Subset(whole, torch.tensor([0, 1])).digest == digests[-1]
