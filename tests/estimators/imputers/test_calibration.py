"""Quantile functions, and what calibration makes of wrong ones."""

import numpy as np
import pytest
from scipy.special import ndtri

from seq2tens.data import Sequences
from seq2tens.estimators.imputers.calibration import (
    AGES,
    GRID,
    Calibration,
    correlated,
    correlation_age,
    pairs,
    quantile_at,
    score_of,
)
from seq2tens.models.imputation import LEVELS

NORMAL = ndtri(np.array(LEVELS))


def test_scores_and_quantiles_are_inverse():
    rng = np.random.default_rng(0)
    knots = np.cumsum(rng.random((50, len(LEVELS))), axis=1)
    np.testing.assert_allclose(score_of(knots[:, 2], knots), NORMAL[2])
    np.testing.assert_allclose(quantile_at(np.full(50, NORMAL[5]), knots), knots[:, 5])
    values = rng.normal(scale=10, size=50)  # many of them beyond the outermost
    np.testing.assert_allclose(quantile_at(score_of(values, knots), knots), values, atol=1e-12)


def test_quantiles_of_a_normal_variable_are_its_own():
    scores = np.linspace(-4, 4, 9)
    knots = np.broadcast_to(3 + 2 * NORMAL, (9, len(LEVELS)))
    np.testing.assert_allclose(quantile_at(scores, knots), 3 + 2 * scores)


def test_calibration_mends_quantiles_that_are_too_narrow():
    """Of two channels the network thinks that they vary half as much as they do, or as much."""
    rng = np.random.default_rng(0)
    channels = np.repeat([0, 1], 5000)
    scale = np.where(channels == 0, 2.0, 1.0)
    knots = np.broadcast_to(NORMAL, (10_000, len(LEVELS)))
    calibration = Calibration.of(
        score_of(scale * rng.normal(size=10_000), knots), channels, 2, np.arange(10_000)
    )
    fresh = score_of(scale * rng.normal(size=10_000), knots)
    for coverage in (0.5, 0.9):
        low, high = (calibration.scores((1 + sign * coverage) / 2)[channels] for sign in (-1, 1))
        for channel in (0, 1):
            inside = ((fresh >= low) & (fresh <= high))[channels == channel].mean()
            assert inside == pytest.approx(coverage, abs=0.02)
    drawn = calibration.corrected(rng.normal(size=(5000, 2)))
    np.testing.assert_allclose(drawn.std(axis=0), [2, 1], rtol=0.05)
    back = calibration.normalized(fresh, channels)
    assert [back[channels == c].std() for c in (0, 1)] == pytest.approx([1, 1], abs=0.05)


def test_few_scores_are_pooled_and_very_few_are_not_believed():
    scores, one = np.linspace(-5, 5, 99), np.zeros(99, dtype=int)
    pooled = Calibration.of(scores, np.repeat([0, 1, 1], 33), 3, one)
    np.testing.assert_array_equal(pooled.table[:, 0], pooled.table[:, 2])
    # number p (n + 1) of 99 is that of split-conformal prediction
    assert pooled.scores(0.95)[0] == pytest.approx(scores[94])
    assert pooled.scores(0.05)[0] == pytest.approx(scores[4])
    normal = Calibration.of(scores[:5], one[:5], 1, np.arange(5))
    assert normal.scores(0.9)[0] == pytest.approx(ndtri(0.9), abs=1e-2)
    assert len(GRID) == len(normal.table)


@pytest.mark.parametrize("n_sequences", [4, 20, 50])
@pytest.mark.parametrize("level", [0.0, 0.7])
def test_intervals_of_few_sequences_cover_others(n_sequences, level):
    """Scores of a sequence share a scale and, in part, a level; coverage is averaged over many draws."""
    rng, entries = np.random.default_rng(0), 60
    inside = {0.5: [], 0.9: []}
    unstretched = []
    for _ in range(320 // n_sequences):
        scores = np.exp(rng.normal(scale=0.4, size=(n_sequences + 50, 1))) * (
            level * rng.normal(size=(n_sequences + 50, 1)) + rng.normal(size=(n_sequences + 50, entries))
        )
        known, fresh = scores[:n_sequences].ravel(), scores[n_sequences:]
        channels, sequences = np.zeros(len(known), dtype=int), np.repeat(np.arange(n_sequences), entries)
        calibration = Calibration.of(known, channels, 1, sequences)
        for coverage, found in inside.items():
            low, high = (calibration.scores((1 + sign * coverage) / 2) for sign in (-1, 1))
            found.append(((fresh >= low) & (fresh <= high)).mean())
        as_one = Calibration.of(known, channels, 1, np.zeros_like(sequences))
        unstretched.append(((fresh >= as_one.scores(0.05)) & (fresh <= as_one.scores(0.95))).mean())
    for coverage, found in inside.items():
        assert np.mean(found) == pytest.approx(coverage, abs=0.02)
    if level and n_sequences < 10:
        assert np.mean(unstretched) < 0.87


def test_every_kind_of_hidden_entries_is_covered():
    """A few entries are harder; together with all others they would hardly count."""
    rng = np.random.default_rng(0)
    hard = rng.random(20_000) < 0.1
    known, fresh = (np.where(hard, 2.0, 1.0) * rng.normal(size=len(hard)) for _ in range(2))
    channels, sequences = np.zeros(len(hard), dtype=int), np.arange(len(hard))
    inside = {}
    for kinds in (None, hard.astype(int)):
        calibration = Calibration.of(known, channels, 1, sequences, kinds)
        low, high = (calibration.scores(level) for level in (0.05, 0.95))
        inside[kinds is None] = ((fresh >= low) & (fresh <= high))[hard].mean()
    assert inside[False] == pytest.approx(0.9, abs=0.02)
    assert inside[True] < 0.75


def test_the_age_of_a_correlation_is_found():
    times = np.cumsum(np.random.default_rng(0).random(20))
    for age in (AGES[20], AGES[30]):
        paths = correlated(np.random.default_rng(1), 400, times, 2, age)
        assert paths.std() == pytest.approx(1, abs=0.05)
        X = Sequences(np.zeros((400 * 20, 2)), np.arange(0, 400 * 20 + 1, 20), np.tile(times, 400))
        found = correlation_age(*pairs(X, paths.reshape(-1, 2)))
        assert 0.8 * age < found < 1.25 * age
    white = np.random.default_rng(2).normal(size=(400, 2))
    assert correlation_age(white[:, 0] * white[:, 1], np.ones(400)) <= 0.5
    assert correlation_age(np.ones(3), np.ones(3)) == 0
