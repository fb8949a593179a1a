import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from data.ragged import assert_same
from models.irregular.stays import CHANNELS, STATIC, batch, stays
from seq2tens.data import Sequences, collate
from seq2tens.models.irregular import IrregularScaler, IrregularSource
from seq2tens.models.irregular.readings import read
from seq2tens.models.irregular.segments import segment_mean, segment_softmax, segment_sum


def random_stays(seed):
    rng = np.random.default_rng(seed)
    return stays(lengths=tuple(rng.integers(1, 12, size=5)), seed=seed)


@pytest.mark.parametrize("seed", range(5))
def test_filled_values_and_gaps_are_those_of_a_loop(seed):
    sequences = random_stays(seed)
    readings = read(batch(sequences), CHANNELS, STATIC)
    filled, gaps = readings.filled(), readings.gaps()
    for i in range(len(sequences)):
        one = sequences[i]
        for channel in range(CHANNELS):
            last, gap, seen_before = 0.0, 0.0, False
            for step, value in enumerate(one.values[:, channel]):
                if step:
                    passed = one.times[step] - one.times[step - 1]
                    gap = passed if seen_before else passed + gap
                seen_before = not math.isnan(value)
                last = value if seen_before else last
                assert float(filled[i, step, channel]) == last
                assert float(gaps[i, step, channel]) == pytest.approx(gap, abs=1e-12)
    assert float(gaps[~readings.inside].abs().max()) == 0


def test_gaps_are_those_of_the_preparation():
    """The same quantity as `data` gives networks that read complete channels."""
    from seq2tens.data.elapsed import since_observed

    sequences = stays()
    expected = collate(since_observed(sequences), dtype=torch.float64).values
    assert_close(read(batch(sequences), CHANNELS, STATIC).gaps(), expected, rtol=1e-5, atol=1e-5)


def test_observations_are_all_there_is():
    sequences = stays()
    seen = read(batch(sequences), CHANNELS, STATIC).observations()
    expected = [
        (i, channel, time, value)
        for i in range(len(sequences))
        for time, row in zip(sequences[i].times, sequences[i].values, strict=True)
        for channel, value in enumerate(row)
        if not math.isnan(value)
    ]
    assert list(zip(*(field.tolist() for field in seen), strict=True)) == expected


def test_unknown_static_features_are_0():
    sequences = stays()
    static = read(batch(sequences), CHANNELS, STATIC).static
    np.testing.assert_array_equal(static.numpy(), np.nan_to_num(sequences.static))
    assert read(batch(stays(n_static=0)), CHANNELS, 0).static.shape == (4, 0)


def test_segments():
    torch.manual_seed(0)
    groups = torch.tensor([2, 0, 2, 2, 0])
    entries = torch.randn(5, 2, dtype=torch.float64)
    softmax = segment_softmax(1000 * entries, groups, 4)
    for group in (0, 2):
        chosen = groups == group
        assert_close(segment_sum(entries, groups, 4)[group], entries[chosen].sum(0))
        assert_close(segment_mean(entries, groups, 4)[group], entries[chosen].mean(0))
        assert_close(softmax[chosen], (1000 * entries[chosen]).softmax(0))
    assert float(segment_mean(entries, groups, 4)[[1, 3]].abs().max()) == 0


def test_source():
    sequences, labels = stays(), np.array([0, 1, 1, 0])
    source = IrregularSource(sequences, labels)
    assert len(source) == 4
    assert source.labels.tolist() == [0, 1, 1, 0]
    assert source.lengths.tolist() == [6, 1, 9, 4]
    found, chosen = source.batch(torch.tensor([3, 1]))
    assert chosen.tolist() == [0, 1]
    assert_close(found._asdict(), collate(sequences, [3, 1])._asdict(), equal_nan=True)
    assert IrregularSource(sequences).batch(torch.tensor([0]))[1] is None
    with pytest.raises(ValueError, match="`labels` must have 4 rows, got 3"):
        IrregularSource(sequences, labels[:3])


def test_digest_tells_data_apart():
    sequences, labels = stays(), np.array([0, 1, 1, 0])
    digest = IrregularSource(sequences, labels).digest
    assert IrregularSource(stays(), list(labels)).digest == digest
    others = [
        IrregularSource(sequences),
        IrregularSource(sequences, 1 - labels),
        IrregularSource(stays(seed=1), labels),
        IrregularSource(
            Sequences(sequences.values, sequences.offsets, sequences.times + 1, sequences.static), labels
        ),
        IrregularSource(Sequences(sequences.values, sequences.offsets, sequences.times), labels),
    ]
    assert len({digest, *(other.digest for other in others)}) == 6


def test_scaler_knows_the_training_set_only_and_keeps_gaps():
    train, other = stays(), stays(seed=1)
    scaler = IrregularScaler().fit(train)
    scaled = scaler.transform(train)
    np.testing.assert_allclose(np.nanmean(scaled.values, axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(np.nanstd(scaled.values, axis=0), 1, atol=1e-5)
    np.testing.assert_allclose(np.nanmean(scaled.static, axis=0), 0, atol=1e-6)
    np.testing.assert_array_equal(np.isnan(scaled.values), np.isnan(train.values))
    np.testing.assert_array_equal(np.isnan(scaled.static), np.isnan(train.static))
    np.testing.assert_array_equal(scaled.times, train.times)
    mean, scale = np.nanmean(train.values, axis=0), np.nanstd(train.values, axis=0)
    transformed = scaler.transform(other)
    np.testing.assert_allclose(transformed.values, (other.values - mean) / scale, rtol=1e-4, atol=1e-5)
    assert_same(scaler.transform(train), scaled)
    bare = stays(n_static=0)
    assert IrregularScaler().fit(bare).transform(bare).static is None
