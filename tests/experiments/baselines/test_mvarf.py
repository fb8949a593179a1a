import numpy as np
import pytest

from seq2tens.experiments.baselines import MVARFClassifier
from seq2tens.experiments.baselines.mvarf import FLOOR, Past, RegressionTree


def test_the_past_by_hand():
    first, second = np.array([[0.0, 1.0], [2.0, 4.0], [5.0, 5.0]]), np.array([[9.0, 8.0]])
    past = Past.of([first, second], order=2)
    expected = [[[0, 1], [0, 1]], [[0, 1], [0, 1]], [[2, 4], [0, 1]], [[9, 8], [9, 8]]]
    np.testing.assert_array_equal(past.values, expected)
    np.testing.assert_array_equal(past.changes, [[0, 0], [2, 3], [3, 1], [0, 0]])
    assert past.lengths.tolist() == [3, 1]
    np.testing.assert_array_equal(past.predictors(1), [[0, 1], [0, 1], [2, 4], [9, 8]])
    assert past.rows(np.array([1])).tolist() == [3]
    assert past.rows(np.array([1, 0])).tolist() == [3, 0, 1, 2]


def turning(n, sign, seed):
    """Each step is the one before last, with the sign changed or not."""
    rng = np.random.default_rng(seed)
    series = []
    for _ in range(n):
        values = list(rng.normal(size=2))
        for _ in range(28):
            values.append(sign * values[-2])
        series.append(np.array(values)[:, None])
    return series


def test_a_tree_misses_little_of_its_class_and_much_of_another():
    known = turning(40, -1, seed=0)
    past = Past.of(known, order=2)
    trees = [RegressionTree.grow(past, np.arange(40), 40, seed) for seed in range(20)]
    tree = next(tree for tree in trees if tree.n_lags == 2)
    own, other = (tree.errors(Past.of(turning(10, sign, seed=1), order=2)).mean() for sign in (-1, 1))
    assert own < 0.5 * other


def test_errors_are_those_of_the_predictions():
    series = [*turning(6, -1, seed=0), np.ones((1, 1))]
    past = Past.of(series, order=2)
    tree = RegressionTree.grow(past, np.arange(6), 5, seed=0)
    for i, found in enumerate(tree.errors(past)):
        alone = Past.of(series[i : i + 1], order=2)
        missed = tree.tree.predict(alone.predictors(tree.n_lags)) - alone.changes[:, 0]
        assert found == pytest.approx(np.mean(missed**2))


def test_a_series_is_what_all_trees_miss_of_it():
    X = [values.T for values in (*turning(8, -1, seed=0), *turning(8, 1, seed=1))]
    fitted = MVARFClassifier(
        n_trees=3, orders=(2,), n_leaves=(9,), scaling=None, n_trees_series=50, random_state=0
    ).fit(X, np.repeat([0, 1], 8))
    assert len(fitted.trees_) == 2 * 3
    past = Past.of([x.T for x in X], order=2)
    errors = np.concatenate([tree.errors(past) for tree in fitted.trees_], axis=1)
    logarithms = np.log(errors + FLOOR)
    expected = np.hstack([errors, logarithms - logarithms.mean(axis=1, keepdims=True)])
    np.testing.assert_allclose(fitted._errors(fitted.trees_, past), expected)
    np.testing.assert_allclose(fitted.predict_proba(X), fitted.forest_.predict_proba(expected))


def test_dynamics_with_the_same_values_are_told_apart():
    """Noise and the same noise in another order, in which each step resembles the one before."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 1, 60))
    for i in np.flatnonzero(y):
        smooth = np.convolve(rng.normal(size=60 + 6), np.ones(7), "valid")
        X[i, 0] = np.sort(X[i, 0])[np.argsort(np.argsort(smooth))]
    fitted = MVARFClassifier(n_trees=30, orders=(2,), n_leaves=(20,), random_state=0).fit(X[:40], y[:40])
    assert fitted.score(X[40:], y[40:]) > 0.9
