import numpy as np
import pytest

from seq2tens.experiments.baselines import GRSFClassifier
from seq2tens.experiments.baselines.grsf import ABSENT, Collection, Shapelet, _standardized, best_split


def standardized(values):
    deviation = values - values.mean()
    return deviation / values.std() if values.std() > 1e-9 else 0 * deviation


def nearest(shapelet, values):
    """By the definition."""
    stretches = [values[i : i + len(shapelet)] for i in range(len(values) - len(shapelet) + 1)]
    return min((np.sqrt(np.mean((shapelet - standardized(s)) ** 2)) for s in stretches), default=ABSENT)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 12])
def test_distances_are_those_of_the_definition(size):
    rng = np.random.default_rng(size)
    series = [rng.normal(5, 2, size=(length, 2)) for length in (7, 12, 3, 9)]
    series.append(np.concatenate([np.full((5, 2), 4.0), rng.normal(size=(4, 2))]))
    collection = Collection.of(series)
    for channel in (0, 1):
        shapelet = _standardized(series[1][:size, channel])
        np.testing.assert_allclose(shapelet, standardized(series[1][:size, channel]), atol=1e-12)
        rows = np.array([4, 0, 1, 2, 3])
        found = collection.distances(Shapelet(channel, shapelet), rows)
        expected = [nearest(shapelet, series[i][:, channel]) for i in rows]
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_shapelet_that_is_longer_than_all_series():
    collection = Collection.of([np.ones((3, 1))])
    assert collection.distances(Shapelet(0, np.arange(4.0)), np.array([0])).tolist() == [ABSENT]


def entropy(labels):
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    return -np.sum(shares * np.log(shares))


def test_the_best_split_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    for _ in range(20):
        labels, distances = rng.integers(3, size=12), rng.integers(6, size=12) / 3
        split = best_split(distances, np.eye(3)[labels])
        gains = []
        for threshold in np.unique(distances)[1:] - 1e-3:
            near = distances < threshold
            parts = [entropy(labels[side]) * side.mean() for side in (near, ~near)]
            gains.append(entropy(labels) - sum(parts))
        assert split.gain == pytest.approx(max(gains))
        near = distances < split.threshold
        parts = [entropy(labels[side]) * side.mean() for side in (near, ~near)]
        assert entropy(labels) - sum(parts) == pytest.approx(split.gain)


def test_equal_distances_are_not_split():
    assert best_split(np.ones(4), np.eye(2)[[0, 1, 0, 1]]).gain == 0
    assert best_split(np.ones(1), np.eye(2)[[0]]).gain == 0


def test_a_bump_is_found_wherever_it_is():
    """Noise, in which one class has a bump somewhere in the second channel."""
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = rng.normal(scale=0.3, size=(80, 2, 40))
    for i in np.flatnonzero(y):
        start = rng.integers(0, 30)
        X[i, 1, start : start + 10] += 3 * np.sin(np.linspace(0, np.pi, 10))
    fitted = GRSFClassifier(n_trees=20, n_shapelets=20, shortest=8, random_state=0).fit(X[:40], y[:40])
    assert fitted.score(X[40:], y[40:]) > 0.9
