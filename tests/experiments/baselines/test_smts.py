import numpy as np

from estimator_contract import problem
from seq2tens.experiments.baselines import SMTSClassifier
from seq2tens.experiments.baselines.smts import observations


def test_observations_are_values_differences_and_time():
    series = [np.array([[1.0, 5.0], [4.0, 4.0]]), np.array([[7.0, 8.0]])]
    np.testing.assert_array_equal(observations(series), [[1, 5, 0, 0, 0], [4, 4, 3, -1, 1], [7, 8, 0, 0, 0]])


def test_what_is_chosen_is_what_predicts():
    X, y = problem()
    grid = {"n_trees": (3, 6), "n_leaves": (2, 8), "n_trees_series": 50, "random_state": 0}
    fitted = SMTSClassifier(**grid).fit(X, y)
    n_trees, n_leaves = fitted.setting_
    assert len(fitted.trees_) == n_trees
    assert max(tree.get_n_leaves() for tree in fitted.trees_) <= n_leaves
    alone = SMTSClassifier(**{**grid, "n_trees": (n_trees,), "n_leaves": (n_leaves,)}).fit(X, y)
    assert alone.forest_.oob_score_ <= fitted.forest_.oob_score_ + 1e-12


def test_an_event_at_any_time_is_found():
    """A bump somewhere in one class: no step tells it alone, the bag does."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 1, 50))
    for i in np.flatnonzero(y):
        X[i, 0, rng.integers(50)] += 8
    fitted = SMTSClassifier(n_trees=(20,), n_leaves=(20,), random_state=0).fit(X[:40], y[:40])
    assert fitted.score(X[40:], y[40:]) > 0.9
