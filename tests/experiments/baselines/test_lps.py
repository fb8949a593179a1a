import numpy as np
import pytest

from estimator_contract import problem
from seq2tens.experiments.baselines import LPSClassifier
from seq2tens.experiments.baselines.lps import Channels, PatternTree, Setting, leave_one_out, segment_table


def series(seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, 2)) for n in (1, 2, 7, 12, 30)]


@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
def test_segments_by_brute_force(share):
    some = series()
    rng = np.random.default_rng(1)
    places, chosen = rng.uniform(size=6), rng.integers(4, size=6)
    table, sizes = segment_table(Channels.of(some), share, places, chosen)
    assert len(table) == sizes.sum()
    row = 0
    for values, size in zip(some, sizes, strict=True):
        both = np.hstack([values, np.diff(values, axis=0, prepend=values[:1])])
        assert size == max(1, round(share * len(values)))
        for k, (place, channel) in enumerate(zip(places, chosen, strict=True)):
            start = int(np.round(place * (len(values) - size)))
            np.testing.assert_allclose(
                table[row : row + size, k], both[start : start + size, channel], rtol=1e-6
            )
        row += size


def test_patterns_count_every_step_of_the_segment():
    channels = Channels.of(series())
    tree = PatternTree.grow(channels, Setting(0.5, 4), seed=0)
    patterns = tree.patterns(channels)
    np.testing.assert_allclose(patterns.sum(axis=1), [1, 0.5, 4 / 7, 0.5, 0.5], rtol=1e-6)


def test_the_nearest_training_series_of_one_of_them_is_itself():
    X, y = problem()
    fitted = LPSClassifier(n_trees=20, shares=(None,), depths=(5,), random_state=0).fit(X, y)
    np.testing.assert_array_equal(fitted.predict(X), y)


def test_a_series_played_slower_is_much_the_same():
    """Distances between series and their slower versions are smaller than those to others."""
    rng = np.random.default_rng(0)
    shapes = [np.cumsum(rng.normal(size=(40, 2)), axis=0) for _ in range(8)]
    slow = [np.repeat(x, 3, axis=0) for x in shapes]
    y = np.arange(8)
    fitted = LPSClassifier(n_trees=100, shares=(0.5,), depths=(6,), random_state=0, scaling=None)
    assert fitted.fit([x.T for x in shapes], y).score([x.T for x in slow], y) > 0.8


def test_leave_one_out():
    patterns = np.array([[0.0], [1.0], [10.0], [11.0], [12.1]])
    assert leave_one_out(patterns, np.array([0, 0, 1, 1, 0])) == 0.8
