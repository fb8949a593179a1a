import numpy as np
import pytest

from seq2tens.experiments.baselines import MVARFClassifier
from seq2tens.experiments.baselines.mvarf import FLOOR, Forest, Past, pasts_of


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


def grown(series, n_lags=2, n_leaves=40, trees=6):
    past = Past.of(series, order=2)
    return past, Forest.grow(past, np.arange(len(series)), n_lags, n_leaves, np.arange(trees))


def test_a_forest_misses_little_of_its_class_and_much_of_another():
    _, forest = grown(turning(40, -1, seed=0))
    own, other = (forest.errors(Past.of(turning(10, sign, seed=1), order=2)).mean() for sign in (-1, 1))
    assert own < other - 1  # logarithms


def test_errors_are_those_of_the_predictions():
    _, forest = grown(turning(6, -1, seed=0), n_leaves=5)
    series = [*turning(2, -1, seed=1), np.ones((1, 1))]
    for i, errors in enumerate(forest.errors(Past.of(series, order=2))):
        alone = Past.of(series[i : i + 1], order=2)
        missed = [tree.predict(alone.predictors(2)) - alone.changes[:, 0] for tree in forest.trees]
        assert errors == pytest.approx(np.mean([np.log(np.mean(m**2) + FLOOR) for m in missed]))


def test_trees_are_asked_about_series_that_they_were_not_grown_on():
    series = turning(6, -1, seed=0)
    past, forest = grown(series)
    of_trees = forest._tree_errors(past)
    assert all(len(members) == 3 for members in forest.members)
    for i, errors in enumerate(forest.out_of_bag_errors(past)):
        strangers = [i not in members for members in forest.members]
        assert any(strangers)
        np.testing.assert_allclose(errors, of_trees[strangers, i].mean(axis=0))
    # A series that is alone in its class has no such trees.
    past, forest = grown(series[:1])
    np.testing.assert_allclose(forest.out_of_bag_errors(past), forest.errors(past))


def test_what_trees_have_seen_they_know_far_better():
    past, forest = grown([np.random.default_rng(i).normal(size=(30, 1)) for i in range(12)])
    assert (forest.out_of_bag_errors(past) > forest.errors(past) + 0.2).all()


def test_a_series_is_what_all_forests_of_all_views_miss_of_it():
    X = [values.T for values in (*turning(8, -1, seed=0), *turning(8, 1, seed=1))]
    fitted = MVARFClassifier(n_trees=3, orders=(2,), n_leaves=(9,), scaling=None, random_state=0)
    fitted.fit(X, np.repeat([0, 1], 8))
    pasts, features = pasts_of([x.T for x in X], 2, fitted.setting_.n_views), []
    for past, of_view in zip(pasts, fitted.forests_, strict=True):
        assert [(forest.n_lags, len(forest.trees)) for forest in of_view] == [(1, 3), (2, 3)] * 2
        errors = np.hstack([forest.errors(past) for forest in of_view])
        features.append(errors - errors.mean(axis=1, keepdims=True))
    assert (fitted.predict(X) == fitted.svm_.predict(np.hstack(features))).all()
    assert set(fitted.predict_proba(X).flat) == {0.0, 1.0}


def test_views_of_a_series():
    series = [np.array([[0.0, 3.0], [2.0, 3.0], [4.0, 3.0]])]
    (as_it_is,) = pasts_of(series, 1, 1)
    _, by_itself = pasts_of(series, 1, 2)
    np.testing.assert_array_equal(as_it_is.changes, [[0, 0], [2, 0], [2, 0]])
    np.testing.assert_allclose(by_itself.changes, as_it_is.changes / np.std([0, 2, 4]))
    np.testing.assert_allclose(by_itself.values[:, 0].mean(axis=0), [-np.sqrt(3 / 2) * 2 / 3, 0], atol=1e-6)


def test_a_view_is_taken_where_it_tells_classes_apart():
    """The same shapes, of one class with any mean and deviation: only the second view shows the shape."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    steps = np.linspace(0, 6, 40)
    X = [
        (rng.uniform(0.1, 5) * (np.sin(steps + i % 2 * 0.7) + 0.05 * rng.normal(size=40)) + 5 * rng.normal())[
            None
        ]
        for i in range(60)
    ]
    fitted = MVARFClassifier(orders=(2,), n_leaves=(20,), random_state=0).fit(X[:40], y[:40])
    assert fitted.setting_.n_views == 2
    assert fitted.score(X[40:], y[40:]) > 0.9


def test_classes_of_one_series_take_the_first_setting():
    X = [values.T for values in (*turning(1, -1, seed=0), *turning(1, 1, seed=1))]
    fitted = MVARFClassifier(n_trees=2, orders=(2, 1), n_leaves=(5,), random_state=0).fit(X, [0, 1])
    assert fitted.setting_ == (2, 5, 1, 10.0)


def test_dynamics_with_the_same_values_are_told_apart():
    """Noise and the same noise in another order, in which each step resembles the one before."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 1, 60))
    for i in np.flatnonzero(y):
        smooth = np.convolve(rng.normal(size=60 + 6), np.ones(7), "valid")
        X[i, 0] = np.sort(X[i, 0])[np.argsort(np.argsort(smooth))]
    fitted = MVARFClassifier(orders=(2,), n_leaves=(20,), random_state=0).fit(X[:40], y[:40])
    assert fitted.score(X[40:], y[40:]) > 0.9
