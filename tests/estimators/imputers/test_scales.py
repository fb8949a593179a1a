"""Intervals in units of the scale of their sequence, with predictions that are known to be right or wrong."""

import numpy as np
import pytest
from scipy.special import ndtri

from estimators.imputers.test_vae import waves
from seq2tens.data import Sequences, from_aeon
from seq2tens.estimators import LS2TImputer
from seq2tens.estimators.imputers.calibration import (
    LARGEST,
    PRIOR_ENTRIES,
    Calibration,
    Sample,
    scales,
    usual_size,
)
from seq2tens.estimators.imputers.splitting import split
from seq2tens.models.imputation import LEVELS

NORMAL = ndtri(np.array(LEVELS))


def predict(X, entries):
    """Whatever the values: standard normal quantiles."""
    return np.where(entries[..., None], NORMAL, 0.0)


def noise(rng, spreads, steps=40, channels=2):
    """Sequences of normal noise with these standard deviations."""
    values = np.repeat(spreads, steps)[:, None] * rng.normal(size=(len(spreads) * steps, channels))
    return Sequences(values, np.arange(0, len(values) + 1, steps))


def coverage(rng, level, drift, spread):
    """Coverage for sequences whose spread has grown by `drift`, calibrated with and without scales."""
    train, later = (noise(rng, np.exp(spread * rng.normal(size=60)) * by) for by in (1.0, drift))
    found = []
    for usual in (usual_size(predict, train), None):
        known, fresh = (
            Sample.of(predict, X, [rng.random(X.values.shape) < 0.3], usual) for X in (train, later)
        )
        one_channel = np.zeros(len(known.scores), dtype=int)
        calibration = Calibration.of(known.scores, one_channel, 1, known.sequences)
        low, high = (calibration.scores((1 + sign * level) / 2) for sign in (-1, 1))
        found.append(((fresh.scores >= low) & (fresh.scores <= high)).mean())
    return found


@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize("spread", [0.0, 0.4])
def test_exchangeable_sequences_are_covered(level, spread):
    rng = np.random.default_rng(0)
    scaled = np.mean([coverage(rng, level, 1.0, spread)[0] for _ in range(10)])
    assert scaled == pytest.approx(level, abs=0.02)


@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize("drift", [0.6, 1.6])
def test_sequences_whose_errors_drift_are_covered_better(level, drift):
    rng = np.random.default_rng(0)
    scaled, unscaled = np.mean([coverage(rng, level, drift, 0.2) for _ in range(10)], axis=0)
    assert abs(scaled - level) < 0.6 * abs(unscaled - level)


def test_the_scale_is_a_shrunken_mean():
    X = Sequences(np.array([[1.0], [-2.0], [np.nan], [50.0], [np.nan], [np.nan]]), np.array([0, 3, 4, 6]))
    expected = [
        ((1 + 2) / 0.5 + PRIOR_ENTRIES) / (2 + PRIOR_ENTRIES),
        (LARGEST / 0.5 + PRIOR_ENTRIES) / (1 + PRIOR_ENTRIES),
        1,  # nothing was observed
    ]
    np.testing.assert_allclose(scales(predict, X, 0.5), expected)
    np.testing.assert_array_equal(scales(predict, X, None), [1, 1, 1])
    assert usual_size(predict, X) is None  # three entries say too little
    assert usual_size(predict, noise(np.random.default_rng(0), np.zeros(3))) is None
    size = usual_size(predict, noise(np.random.default_rng(0), np.ones(100)))
    assert size == pytest.approx(np.sqrt(2 / np.pi), rel=0.02)


def test_every_observed_entry_is_hidden_once():
    X, calls = noise(np.random.default_rng(0), np.ones(4)), []
    X = X.with_values(np.where(np.arange(len(X.values))[:, None] % 5 == 0, np.nan, X.values))

    def counted(X, entries):
        calls.append(entries)
        return predict(X, entries)

    scales(counted, X, 1.0)
    np.testing.assert_array_equal(np.sum(calls, axis=0), ~np.isnan(X.values))
    assert all(0.1 < entries.mean() < 0.5 for entries in calls)


def test_a_sequence_has_its_interval_in_any_company():
    X = waves(n=20)
    X[:, 0, 3:6], X[3], X[4, 0] = np.nan, np.nan, np.nan
    model = LS2TImputer(width=8, functionals=4, depth=1, epochs=3, random_state=0, device="cpu").fit(X)
    assert model.calibration_.usual_size > 0
    sequences = [x[:, : 5 + i] for i, x in enumerate(X[:8])]
    together = model.predict_interval(sequences)
    for i, sequence in enumerate(sequences):
        for end, alone in zip(together, model.predict_interval([sequence]), strict=True):
            np.testing.assert_allclose(end[i], alone[0], rtol=1e-4, atol=1e-4)


def test_noisier_sequences_have_wider_intervals():
    X = waves(n=40)
    model = LS2TImputer(width=8, functionals=4, depth=1, epochs=10, random_state=0, device="cpu").fit(X)
    noisy = X[:8] + np.random.default_rng(1).normal(size=X[:8].shape)
    widths = []
    for given in (X[:8].copy(), noisy):
        given[:, :, 10] = np.nan
        low, high = model.predict_interval(given)
        widths.append((high - low)[:, :, 10].mean())
    assert widths[1] > 1.3 * widths[0]


def test_entries_that_other_sequences_lack():
    X = waves(n=40)
    X[:, 0, 3:9], X[::2, 1, 12:] = np.nan, np.nan
    parts = split(from_aeon(X), "points", seed=0)
    missing = parts.missing_elsewhere.reshape(len(parts.validation), -1, 2)
    observed = ~np.isnan(parts.validation.values).reshape(missing.shape)
    assert not missing[:, :, 0].any()  # all lack the same steps
    for entries, known in zip(missing[:, :, 1], observed[:, :, 1], strict=True):
        assert not entries.any() or (known.all() and entries.sum() == X.shape[2] - 12)
    assert missing[:, :, 1].any()
    assert not split(from_aeon(waves(n=40)), "points", seed=0).missing_elsewhere.any()
    assert not split(from_aeon(X[:4]), "points", seed=0).missing_elsewhere.any()  # too few to leave some out


def test_shorter_sequences_lack_periodically():
    X = Sequences.from_list([np.array([[1.0], [np.nan]]) if i % 2 else np.ones((7, 1)) for i in range(40)])
    parts = split(X, "points", seed=0)
    for start, stop in zip(parts.validation.offsets[:-1], parts.validation.offsets[1:], strict=True):
        entries = parts.missing_elsewhere[start:stop, 0]
        assert not entries.any() or np.flatnonzero(entries).tolist() == list(range(1, stop - start, 2))
    assert parts.missing_elsewhere.any()
