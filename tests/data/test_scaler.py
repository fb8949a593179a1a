import json

import numpy as np
import pytest
from hypothesis import given

from data.ragged import assert_same, collections
from seq2tens.data import Scaler, Sequences


@given(collections(min_size=1))
def test_channels_are_standardised_by_their_observed_entries(sequences):
    scaled = Scaler().fit(sequences).transform(sequences)
    assert scaled.values.dtype == np.float32
    assert_same(scaled, sequences, ("offsets", "times", "static"))
    np.testing.assert_array_equal(np.isnan(scaled.values), np.isnan(sequences.values))
    for before, after in zip(sequences.values.T, scaled.values.T, strict=True):
        seen = ~np.isnan(before)
        if seen.any():
            np.testing.assert_allclose(after[seen].mean(dtype=float), 0, atol=1e-5)
            np.testing.assert_allclose(
                after[seen].std(dtype=float), float(np.ptp(before[seen]) > 0), atol=1e-5
            )


@given(collections(min_size=1))
def test_sequence_mode_is_channel_mode_of_each_sequence(sequences):
    scaled = Scaler("sequence").transform(sequences)
    parts = [Scaler().fit(sequences[i]).transform(sequences[i]) for i in range(len(sequences))]
    assert_same(scaled, Sequences.concatenate(parts))


def test_statistics_are_those_of_training():
    train = Sequences(np.array([[0.0], [2.0], [4.0]]), np.array([0, 1, 3]))
    test = Sequences(np.array([[2.0 + np.sqrt(8 / 3)]]), np.array([0, 1]))
    np.testing.assert_allclose(Scaler().fit(train).transform(test).values, [[1]])


def test_constant_and_missing_channels():
    # 0.1 is not a binary fraction: its rounded mean differs from it, its deviation is not exactly 0.
    values = np.column_stack([np.full(7, 0.1), np.full(7, np.nan), np.full(7, 1e-200) * np.arange(7)])
    scaler = Scaler().fit(Sequences(values, np.array([0, 7])))
    assert scaler.scale_.tolist() == [1, 1, 1]
    assert scaler.mean_[1] == 0
    scaled = scaler.transform(Sequences(np.array([[0.1, 5.0, 0.0]]), np.array([0, 1])))
    np.testing.assert_allclose(scaled.values, [[0, 5, 0]], atol=1e-7)


@pytest.mark.parametrize("mode", ["channel", "sequence"])
def test_state_survives_json(mode):
    rng = np.random.default_rng(0)
    sequences = Sequences(rng.normal(size=(9, 2)), np.array([0, 4, 9]))
    scaler = Scaler(mode).fit(sequences)
    again = Scaler.from_state(json.loads(json.dumps(scaler.state())))
    assert_same(again.transform(sequences), scaler.transform(sequences))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: Scaler("global"), "`mode` must be one of 'channel', 'sequence', got 'global'"),
        (lambda x: Scaler().transform(x), '`transform` in mode "channel" needs `fit` first'),
        (
            lambda x: Scaler.from_state({"mode": "channel", "mean": [0] * 3, "scale": [1] * 3}).transform(x),
            "`sequences` must have 3 channels as in `fit`, got 2",
        ),
        (
            lambda x: Scaler.from_state({"mode": "channel"}),
            "`state` must have the keys ['mean', 'mode', 'scale'], got ['mode']",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        call(Sequences(np.zeros((2, 2)), np.array([0, 2])))
    assert str(raised.value) == message
