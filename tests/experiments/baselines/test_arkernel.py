import numpy as np
import pytest

from estimator_contract import problem
from seq2tens.experiments.baselines import ARKernelClassifier
from seq2tens.experiments.baselines.arkernel import Transitions, transitions


def series(n, channels=1, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(rng.integers(4, 9), channels)) for _ in range(n)]


def integral(x, y, degrees=1.0):
    """Of the likelihoods of two series of one channel, order 1, over slope, constant and variance."""
    slope, constant = np.meshgrid(np.linspace(-6, 6, 121), np.linspace(-6, 6, 121), indexing="ij")
    total = 0.0
    variances = np.exp(np.linspace(-5, 8, 261))
    for variance in variances:
        log = -(slope**2 + constant**2) / (2 * variance) - np.log(variance)  # matrix-normal, two entries
        log = log - (degrees + 2) / 2 * np.log(variance) - 1 / (2 * variance)  # inverse Wishart
        for values in (x[:, 0], y[:, 0]):
            missed = values[1:, None, None] - slope * values[:-1, None, None] - constant
            log = log - np.log(variance) / 2 - (missed**2).mean(axis=0) / (2 * variance)
        total += np.exp(log).sum() * variance
    return np.log(total)


def test_the_kernel_is_the_integral_over_all_models():
    degrees = 1.0
    alpha = (degrees + 2) / (degrees + 2 + 1)
    some = [0.3 * values for values in series(3)]
    rows = Transitions.of(some, order=1, evidence=2.0, alpha=alpha)
    ours = np.array([rows.log_kernel(0, rows, np.array([j]))[0] for j in (0, 1, 2)])
    theirs = np.array([integral(some[0], some[j], degrees) for j in (0, 1, 2)])
    np.testing.assert_allclose(np.diff(ours) / (2 * (1 - alpha)), np.diff(theirs), rtol=1e-2)


@pytest.mark.parametrize("alpha", [0.5, 0.8])
def test_both_ways_to_the_determinants_agree(alpha):
    rows = Transitions.of(series(5, channels=3), order=2, evidence=10.0, alpha=alpha)
    columns = np.arange(5)
    for i in range(5):
        np.testing.assert_allclose(
            rows._by_moments(i, rows, columns), rows._by_steps(i, rows, columns), rtol=1e-10
        )


def test_transitions():
    values = np.arange(8.0).reshape(4, 2)
    expected = [[1, 2, 3, 0, 1, 4, 5], [1, 4, 5, 2, 3, 6, 7]]
    np.testing.assert_allclose(transitions(values, order=2) * np.sqrt(2), expected)
    np.testing.assert_allclose(transitions(values[:1], order=2), [[1, 0, 1, 0, 1, 0, 1]])
    np.testing.assert_allclose(transitions(values, order=0) * 2, np.hstack([np.ones((4, 1)), values]))


def test_distances_are_those_of_a_kernel():
    model = ARKernelClassifier()
    distances, _ = model._pairwise_distances(Transitions.of(series(12, channels=2), 2, 10.0, 0.5))
    np.testing.assert_allclose(distances, distances.T)
    np.testing.assert_allclose(distances.diagonal(), 0, atol=1e-12)
    assert (distances >= -1e-12).all()
    assert np.linalg.eigvalsh(np.exp(-distances)).min() > -1e-9


def test_orders_that_the_shortest_series_allows():
    X, y = problem(shortest=2)
    fitted = ARKernelClassifier(random_state=0).fit(X, y)
    assert fitted.setting_.order == 1
    assert fitted.predict([x[:, :1] for x in X]).shape == y.shape


def test_cross_validation_finds_the_order_that_tells_the_classes_apart():
    """Noise whose variance and first correlation are the same in both classes, but not the third."""
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = rng.normal(size=(80, 1, 150))
    for i in range(80):
        for t in range(3, 150):
            X[i, 0, t] += (0.6 if y[i] else -0.6) * X[i, 0, t - 3]
    model = ARKernelClassifier(orders=(1, 3), evidences=(100.0,), random_state=0).fit(X[:50], y[:50])
    assert model.setting_.order == 3
    assert model.score(X[50:], y[50:]) > 0.95


def test_only_a_sample_is_looked_at_to_choose(monkeypatch):
    seen = []
    original = ARKernelClassifier._choose
    monkeypatch.setattr(
        ARKernelClassifier, "_choose", lambda self, x, *rest: seen.append(len(x)) or original(self, x, *rest)
    )
    X, y = problem(n=40)
    ARKernelClassifier(orders=(1,), sample=20, random_state=0).fit(X, y)
    assert seen == [20]


def test_values_out_of_all_proportion_are_told():
    X, y = problem()
    fitted = ARKernelClassifier(orders=(2,), evidences=(1.0,), random_state=0).fit(X, y)
    X[3] = X[3] * 1e20
    with pytest.raises(ValueError, match="so large that a determinant has no correct digits"):
        fitted.predict(X)
