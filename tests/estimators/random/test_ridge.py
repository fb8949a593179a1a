import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge as Reference

from seq2tens.estimators.random import moments, ridge
from seq2tens.estimators.random.ridge import choose_penalty, fit_ridge, neighbors


def table(n=30, p=12, targets=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(3, rng.uniform(0.5, 2, size=p), size=(n, p))
    Y = X @ rng.normal(size=(p, targets)) + rng.normal(size=(n, targets))
    return torch.from_numpy(X).float(), torch.from_numpy(Y).float(), torch.from_numpy(rng.uniform(0.2, 3, n))


def fit(X, Y, weights=None, penalties=(0.1,)):
    weights = torch.ones(len(X)) if weights is None else weights / weights.mean()
    return fit_ridge(lambda rows: X[rows].clone(), Y, weights, np.random.default_rng(0), penalties)


def reference(X, Y, weights, penalty):
    """scikit-learn's, on standardised features; returns its predictions for rows."""
    mean = np.average(X, axis=0, weights=weights)
    scale = np.sqrt(np.average((X.numpy() - mean) ** 2, axis=0, weights=weights))
    model = Reference(alpha=penalty * X.shape[1])
    model.fit((X.numpy() - mean) / scale, Y.numpy(), sample_weight=weights / weights.mean())
    return lambda rows: model.predict((rows.numpy() - mean) / scale)


@pytest.mark.parametrize(("n", "p"), [(30, 12), (12, 30)])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_ridge_regression(n, p, weighted):
    X, Y, weights = table(n, p)
    weights = weights.numpy() if weighted else np.ones(n)
    fitted = fit(X, Y, torch.from_numpy(weights))
    np.testing.assert_allclose(fitted(X.clone()), reference(X, Y, weights, 0.1)(X), atol=1e-4)


@pytest.mark.parametrize(("n", "p"), [(60, 7), (60, 80)])
@pytest.mark.parametrize("weighted", [False, True])
def test_long_tables_are_taken_in_batches(n, p, weighted, monkeypatch):
    X, Y, weights = table(n, p)
    weights = weights.float() if weighted else torch.ones(n)
    expected = fit(X, Y, weights)
    for name, size in (("SAMPLE", n - 1), ("BATCH", 13)):
        monkeypatch.setattr(ridge, name, size)
    monkeypatch.setattr(moments, "PANEL", 3)
    monkeypatch.setattr(ridge, "statistics", lambda *_: (expected.mean, expected.scale))
    fitted = fit(X, Y, weights)
    torch.testing.assert_close(fitted.coefficients, expected.coefficients, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(fitted.intercept, expected.intercept, rtol=1e-4, atol=1e-5)


def without(X, Y, weights, left_out, penalty):
    """scikit-learn's predictions for some rows, learned from the others."""
    others = np.setdiff1d(np.arange(len(X)), left_out)
    model = Reference(alpha=penalty * X.shape[1])
    model.fit(X[others].numpy(), Y[others].numpy(), sample_weight=weights[others].numpy())
    return model.predict(X[left_out].numpy())


def test_folds_are_left_out_in_turn():
    X, Y, weights = table(14, 9)
    X, weights = X - X.mean(dim=0), weights / weights.mean()
    folds = np.array([0, 0, 0, 2, 2, 1, 1, 1, 1, 1, 3, 0, 4, 4])
    _, _, held_out = choose_penalty(X, Y, weights.float(), folds, (0.3,))
    for fold in range(5):
        rows = np.flatnonzero(folds == fold)
        np.testing.assert_allclose(held_out[rows], without(X, Y, weights, rows, 0.3), atol=1e-3)


def test_the_penalty_is_that_of_rows_left_out_alone():
    X, Y, weights = table(14, 9)
    X, weights = X - X.mean(dim=0), weights / weights.mean()
    penalties = (1e-3, 1e-2, 0.1, 1.0, 10.0)
    chosen, _, _ = choose_penalty(X, Y, weights.float(), np.zeros(14, dtype=int), penalties)
    errors = [
        sum(
            float(weights[i]) * ((without(X, Y, weights, [i], penalty) - Y[[i]].numpy()) ** 2).sum()
            for i in range(14)
        )
        for penalty in penalties
    ]
    assert 0 < np.argmin(errors) < len(penalties) - 1
    assert chosen == penalties[np.argmin(errors)]


def test_folds_are_stretches_of_each_class():
    classes = np.array([0, 1] * 25 + [2] * 5 + [3])
    folds = neighbors(classes)
    assert folds[classes == 0].tolist() == (np.arange(25) * 10 // 25).tolist()
    assert folds[classes == 2].tolist() == [0, 2, 4, 6, 8]
    assert folds[classes == 3].tolist() == [3]
    assert neighbors(np.arange(3)).tolist() == [0, 1, 2]  # one row each: something is left


def test_the_penalty_follows_the_noise():
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.normal(size=(80, 40))).float()
    signal = X @ torch.from_numpy(rng.normal(size=(40, 1))).float()
    noise = torch.from_numpy(rng.normal(size=(80, 1))).float()
    chosen = [fit(X, signal + size * noise, penalties=ridge.PENALTIES).penalty for size in (0.01, 5, 500)]
    assert chosen[0] < chosen[1] < chosen[2]


def test_constant_columns_count_for_nothing():
    X, Y, _ = table()
    padded = torch.cat([X, torch.full((len(X), 3), 7.3)], dim=1)
    fitted = fit(padded, Y)
    assert (fitted.coefficients[-3:] == 0).all()
    padded[:, -3:] = 1e6
    torch.testing.assert_close(fitted(padded), fit(padded, Y)(padded.clone()))


def test_rows_far_out_are_limited():
    X, Y, _ = table()
    fitted = fit(X, Y)
    far, further = X[:1] + 1e4, X[:1] + 1e6
    torch.testing.assert_close(fitted(far), fitted(further))


@pytest.mark.parametrize("penalties", [(), (0.0,), (1.0, -1.0), (float("inf"),), None, 3.0, "a"])
def test_wrong_penalties(penalties):
    with pytest.raises(ValueError, match="`penalties` must be numbers above 0, got"):
        ridge.check_penalties(penalties)
