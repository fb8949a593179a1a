import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from data.ragged import collections
from seq2tens.data import Sequences, collate, length_blocks, length_buckets
from seq2tens.data.batches import PackedSteps, content_digest

LENGTHS = st.lists(st.integers(0, 50), max_size=40).map(lambda lengths: np.array(lengths, dtype=np.int64))


@given(collections(min_size=1), st.sampled_from([torch.float32, torch.float64]))
def test_collate_holds_every_observed_entry(sequences, dtype):
    batch = collate(sequences, dtype=dtype)
    assert batch.values.dtype == dtype
    assert batch.values.shape == (len(sequences), max(1, sequences.lengths.max()), sequences.n_channels)
    assert batch.mask.sum(dim=1).tolist() == batch.lengths.tolist() == sequences.lengths.tolist()
    observed = batch.mask[..., None].expand_as(batch.values) if batch.observed is None else batch.observed
    for i, sequence in enumerate(sequences):
        inside = torch.from_numpy(np.nan_to_num(sequence)).to(dtype)
        assert torch.equal(batch.values[i, : len(sequence)], inside)
        assert torch.equal(observed[i, : len(sequence)], torch.from_numpy(~np.isnan(sequence)))
    assert not batch.values[~observed].any()
    assert not observed[~batch.mask].any()


@given(collections(min_size=1))
def test_collate_keeps_times_and_static(sequences):
    batch = collate(sequences, dtype=torch.float64)
    assert (batch.times is None) == (sequences.times is None)
    assert (batch.static is None) == (sequences.static is None)
    if batch.times is not None:
        np.testing.assert_array_equal(batch.times[batch.mask], sequences.times)
    if batch.static is not None:
        np.testing.assert_array_equal(batch.static, sequences.static)


def test_observed_is_none_only_where_nothing_is_missing():
    values = np.array([[1.0], [np.nan], [2.0]])
    sequences = Sequences(values, np.array([0, 2, 3]))
    assert collate(sequences, [1]).observed is None
    assert collate(sequences, [1, 0]).observed.tolist() == [[[True], [False]], [[True], [False]]]
    assert collate(sequences, slice(0, 0)).values.shape == (0, 1, 1)


def test_to_moves_every_tensor():
    sequences = Sequences(np.ones((3, 1)), np.array([0, 2, 3]), np.arange(3))
    moved = collate(sequences).to("meta")
    assert moved.values.is_meta
    assert moved.times.is_meta
    assert moved.mask.is_meta
    assert moved.observed is None


@given(LENGTHS, st.integers(1, 9), st.sampled_from([None, "numpy", "torch"]))
def test_buckets_partition_the_rows(lengths, batch_size, kind):
    batches = length_buckets(lengths, batch_size, new_generator(kind))
    assert len(batches) == -(-len(lengths) // batch_size)
    assert sorted(np.concatenate([np.zeros(0, int), *batches])) == list(range(len(lengths)))
    sizes = {len(batch) for batch in batches}
    assert not sizes or max(sizes) <= batch_size
    assert not sizes or max(sizes) - min(sizes) <= 1


def new_generator(kind, seed=0):
    if kind == "numpy":
        return np.random.default_rng(seed)
    return None if kind is None else torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_buckets_depend_on_their_generator_only(kind):
    lengths = np.random.default_rng(0).integers(5, 100, size=200)
    np_state, torch_state = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    first, again, other = (length_buckets(lengths, 16, new_generator(kind, seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(one, two) for one, two in zip(first, again, strict=True))
    assert any(set(one) != set(two) for one, two in zip(first, other, strict=True))
    assert np.array_equal(np.random.get_state()[1], np_state)  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), torch_state)


def padded_steps(lengths, batches):
    return sum(len(batch) * lengths[batch].max() for batch in batches)


def test_buckets_need_little_padding():
    rng = np.random.default_rng(0)
    lengths = rng.integers(5, 100, size=500)
    shuffled = np.array_split(rng.permutation(500), 32)
    assert padded_steps(lengths, length_buckets(lengths, 16, rng)) < 1.15 * lengths.sum()
    assert padded_steps(lengths, shuffled) > 1.5 * lengths.sum()


def test_equal_lengths_are_shuffled_throughout():
    batches = length_buckets(np.full(64, 8), 8, np.random.default_rng(0))
    assert all(np.ptp(batch) > 16 for batch in batches)


@given(LENGTHS, st.integers(1, 200))
def test_blocks_are_as_large_as_allowed(lengths, steps):
    blocks = length_blocks(lengths, steps)
    assert sorted(np.concatenate([np.zeros(0, dtype=int), *blocks]).tolist()) == list(range(len(lengths)))
    sizes = [len(block) * max(1, lengths[block].max()) for block in blocks]
    assert all(size <= steps or len(block) == 1 for size, block in zip(sizes, blocks, strict=True))
    for block, following in itertools.pairwise(blocks):
        longest = max(1, lengths[following[0]])
        assert (len(block) + 1) * longest > steps
        assert longest >= lengths[block].max()


def test_errors():
    with pytest.raises(ValueError, match="`steps` must be at least 1, got 0"):
        length_blocks(np.arange(3), 0)
    with pytest.raises(ValueError, match="`batch_size` must be at least 1, got 0"):
        length_buckets(np.arange(3), 0)
    with pytest.raises(TypeError, match=r"`generator` must be a torch.Generator or numpy.*, got int"):
        length_buckets(np.arange(3), 2, 0)


@given(collections(min_size=1, extras=False), st.integers(0, 2**31))
def test_gathered_steps_are_those_of_collate(sequences, seed):
    rows = np.random.default_rng(seed).permutation(len(sequences))[: 1 + seed % len(sequences)]
    steps = PackedSteps.of(sequences).padded(torch.tensor(rows))
    expected = collate(sequences, rows, dtype=torch.float64)
    values = torch.tensor(np.nan_to_num(sequences.values), dtype=torch.float64)
    if len(values):
        assert torch.equal(steps.gather(values), expected.values)
    assert steps.lengths is None or torch.equal(steps.lengths, expected.lengths)
    assert (steps.lengths is None) == bool(expected.mask.all())


def test_digests_tell_contents_and_absence_apart():
    ones, zeros = np.ones(2), torch.zeros(2)
    digests = {content_digest(*parts) for parts in [(ones,), (zeros,), (ones, zeros), (ones, None), (None,)]}
    assert len(digests) == 5
    assert content_digest(torch.arange(6).view(2, 3).T) == content_digest(np.arange(6).reshape(2, 3).T)
