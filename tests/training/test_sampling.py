import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seq2tens.training import Subset, TensorSource, validation_split
from seq2tens.training.rng import shuffling_generator
from seq2tens.training.sampling import Sampler
from training.problems import recipe


def source(n, labels=None, lengths=None):
    return TensorSource(torch.arange(n), labels=labels, lengths=lengths)


@given(st.integers(1, 60), st.integers(1, 20))
def test_shuffled_batches_hold_every_row_once(n, size):
    sampler = Sampler(recipe(batch_size=size), source(n))
    batches = sampler.epoch(shuffling_generator(0, 1))
    sizes = [len(rows) for rows in batches]
    assert len(batches) == sampler.n_batches == -(-n // size)
    assert max(sizes) <= size
    assert max(sizes) - min(sizes) <= 1
    assert sorted(torch.cat(batches).tolist()) == list(range(n))


def test_the_last_batch_has_what_is_left():
    batches = Sampler(recipe(batch_size=16, sampling="remainder"), source(180)).epoch(
        shuffling_generator(0, 1)
    )
    assert [len(rows) for rows in batches] == [16] * 11 + [4]
    assert sorted(torch.cat(batches).tolist()) == list(range(180))


def test_epochs_differ_and_come_back():
    sampler = Sampler(recipe(), source(40))
    first, second, again = (torch.cat(sampler.epoch(shuffling_generator(0, e))) for e in (1, 2, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert not torch.equal(first, torch.cat(sampler.epoch(shuffling_generator(1, 1))))


def test_buckets_put_similar_lengths_together():
    lengths = torch.tensor([5, 100, 6, 101, 5, 99, 6, 100])
    sampler = Sampler(recipe(batch_size=4, sampling="buckets"), source(8, lengths=lengths))
    for rows in sampler.epoch(shuffling_generator(0, 1)):
        assert lengths[rows].max() - lengths[rows].min() < 10


@pytest.mark.parametrize(("rare", "common"), [(4, 100), (10, 17), (12, 12)])
def test_oversampled_batches(rare, common):
    """As many from both classes: all of the larger, or the smaller three times."""
    labels = np.repeat([0, 1], [common, rare])
    sampler = Sampler(recipe(batch_size=8, sampling="oversampled"), source(len(labels), labels))
    batches = sampler.epoch(shuffling_generator(0, 1))
    draws = min(common, 3 * rare)
    rows = torch.cat(batches).numpy()
    assert len(rows) == 2 * draws
    assert len(batches) == sampler.n_batches == -(-draws // 4)
    assert all(labels[batch].mean() == 0.5 for batch in batches)
    counts = np.bincount(rows, minlength=len(labels))
    assert counts[:common].max() == 1
    assert counts[common:].max() - counts[common:].min() <= 1


@given(st.integers(1, 9), st.integers(9, 40), st.integers(9, 40), st.integers(3, 12))
def test_balanced_batches(rare, common, other, size):
    labels = np.repeat(["a", "b", "c"], [rare, common, other])
    sampler = Sampler(recipe(batch_size=size, sampling="balanced"), source(len(labels), labels))
    batches = sampler.epoch(shuffling_generator(0, 1))
    for rows in batches:
        assert len(set(np.unique(labels[rows], return_counts=True)[1])) == 1
        assert set(labels[rows]) == {"a", "b", "c"}
        assert len(rows) <= max(size, 3)
    rows = torch.cat(batches)
    assert len(batches) == sampler.n_batches
    assert len(rows.unique()) == len(rows) == 3 * rare
    assert set(range(rare)) <= set(rows.tolist())


@pytest.mark.parametrize(("kind", "column"), [("buckets", "lengths"), ("balanced", "labels")])
def test_missing_columns_are_named(kind, column):
    with pytest.raises(ValueError, match=f"`train` must have `{column}` for the sampling '{kind}', got None"):
        Sampler(recipe(sampling=kind), source(4))


def test_balanced_batches_need_room_for_every_class():
    with pytest.raises(ValueError, match=r"at least the number of classes, 3, .* got 2"):
        Sampler(recipe(sampling="balanced", batch_size=2), source(6, torch.arange(6) % 3))


@given(st.lists(st.integers(0, 4), min_size=2, max_size=80), st.floats(0.05, 0.95))
def test_validation_split_is_stratified(labels, fraction):
    train, held = validation_split(labels, fraction, torch.Generator().manual_seed(0))
    assert sorted([*train.tolist(), *held.tolist()]) == list(range(len(labels)))
    codes = np.asarray(labels)
    for code in set(labels):
        size, count = (codes == code).sum(), (codes[held] == code).sum()
        assert count < size
        assert abs(count - min(fraction * size, size - 1)) <= 1


def test_validation_split_total_and_determinism():
    labels = ["x"] * 50 + ["y"] * 33 + ["z"] * 17
    splits = [validation_split(labels, 0.2, torch.Generator().manual_seed(s)) for s in (0, 0, 1)]
    assert [len(part) for part in splits[0]] == [80, 20]
    assert torch.equal(splits[0][1], splits[1][1])
    assert not torch.equal(splits[0][1], splits[2][1])


def test_validation_split_checks_the_fraction(generator):
    with pytest.raises(ValueError, match=r"`fraction` must lie in \(0, 1\), got 1.5"):
        validation_split([0, 1], 1.5, generator)


def test_subset():
    part = Subset(source(6, labels=list("abcdef"), lengths=torch.arange(6)), torch.tensor([4, 1]))
    assert len(part) == 2
    assert part.labels == ["e", "b"]
    assert part.lengths.tolist() == [4, 1]
    assert part.batch(torch.tensor([1]))[0].tolist() == [1]
    assert Subset(source(3), torch.tensor([0])).labels is None


def test_tensor_source_wants_equal_rows():
    with pytest.raises(ValueError, match=r"the same number of rows, got \[3, 2\]"):
        TensorSource(torch.zeros(3), labels=[0, 1])
