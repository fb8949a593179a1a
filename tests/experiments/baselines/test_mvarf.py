import numpy as np

from seq2tens.experiments.baselines import MVARFClassifier
from seq2tens.experiments.baselines.mvarf import Past, RegressionTree


def test_the_past_by_hand():
    first, second = np.arange(6.0).reshape(3, 2), np.array([[9.0, 8.0]])
    past = Past.of([first, second], order=2)
    expected = [[[0, 1], [0, 1]], [[0, 1], [0, 1]], [[2, 3], [0, 1]], [[9, 8], [9, 8]]]
    np.testing.assert_array_equal(past.values, expected)
    known, lengths = past.known(1)
    assert known.tolist() == [False, True, True, True]
    assert lengths.tolist() == [2, 1]
    known, lengths = past.known(2)
    assert known.tolist() == [False, False, True, True]
    assert lengths.tolist() == [1, 1]


def test_a_tree_learns_what_follows():
    """Each step is the one before last with the sign changed."""
    rng = np.random.default_rng(0)
    series = []
    for _ in range(20):
        values = list(rng.normal(size=2))
        for _ in range(28):
            values.append(-values[-2])
        series.append(np.array(values)[:, None])
    past, values = Past.of(series, order=2), np.concatenate(series)
    trees = [RegressionTree.grow(past, values, 40, seed) for seed in range(20)]
    tree = next(tree for tree in trees if tree.n_lags == 2)
    known, lengths = past.known(2)
    predicted = tree.tree.predict(past.values[known].reshape(lengths.sum(), -1))
    missed = np.mean((predicted - values[known, 0]) ** 2)
    assert missed < 0.2 * values[known].var()
    np.testing.assert_allclose(tree.bag(past).sum(axis=1), 1, rtol=1e-6)


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
