"""Sums of the normal equations: whatever was added, taken away and merged, they give a new fit."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge as Reference

from seq2tens.estimators.random import moments
from seq2tens.estimators.random.moments import Moments, NormalEquations

WIDTH, PENALTY = 12, 0.5


def rows(n, width=WIDTH, targets=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(1, rng.uniform(0.5, 2, size=width), size=(n, width))
    Y = X @ rng.normal(size=(width, targets)) + 0.5 * rng.normal(size=(n, targets))
    return torch.from_numpy(X), torch.from_numpy(Y), torch.from_numpy(rng.uniform(0.2, 3, n))


def sums(X, Y, weights):
    total = Moments.zeros(X.shape[1], Y.shape[1])
    total.add(X, Y, weights)
    return total


def reference(X, Y, weights, penalty=PENALTY):
    """scikit-learn's intercepts, then coefficients."""
    model = Reference(alpha=penalty, solver="cholesky").fit(X, Y, sample_weight=weights)
    return np.concatenate([model.intercept_[None], model.coef_.T])


@pytest.fixture(autouse=True)
def small_panels(monkeypatch):
    monkeypatch.setattr(moments, "PANEL", 5)


def test_they_solve_ridge_regression_with_weights():
    X, Y, weights = rows(40)
    found = NormalEquations(PENALTY).solve(sums(X, Y, weights))
    np.testing.assert_allclose(found, reference(X, Y, weights), rtol=1e-9, atol=1e-12)


def test_a_thousand_additions_and_removals_are_a_new_fit():
    X, Y, weights = rows(1200)
    equations, total = NormalEquations(PENALTY), sums(X[:400], Y[:400], weights[:400])
    present, rng = set(range(400)), np.random.default_rng(0)
    factors = []
    for _ in range(1000):
        absent = sorted(set(range(1200)) - present)
        away = bool(rng.random() < 0.5)
        row = int(rng.choice(sorted(present) if away else absent))
        (total.subtract if away else total.add)(X[[row]], Y[[row]], weights[[row]])
        present ^= {row}
        found = equations.solve(total)
        factors.append(equations.factor.data_ptr())
    left = sorted(present)
    expected = reference(X[left], Y[left], weights[left])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)
    assert len(set(factors)) < 10  # the early factor served nearly all


def test_an_old_factor_is_replaced_where_it_no_longer_serves():
    X, Y, weights = rows(20, width=40)
    equations = NormalEquations(1e-6)
    equations.solve(sums(X, Y, weights))
    old = equations.factor
    other, values, more = rows(200, width=40, seed=1)
    found = equations.solve(sums(1e3 * other, values, more))
    assert equations.factor is not old
    np.testing.assert_allclose(found, reference(1e3 * other, values, more, 1e-6), rtol=1e-6, atol=1e-9)


def test_ten_merged_parts_are_the_whole():
    X, Y, weights = rows(200)
    total = Moments.zeros(WIDTH, 2)
    for part in np.array_split(np.arange(200), 10):
        total.merge(sums(X[part], Y[part], weights[part]))
    whole = sums(X, Y, weights)
    torch.testing.assert_close(total.joint, whole.joint, rtol=1e-12, atol=1e-10)
    found, expected = (NormalEquations(PENALTY).solve(each) for each in (total, whole))
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


def test_a_target_that_comes_later():
    X, Y, weights = rows(50, targets=3)
    Y[:, 1] *= torch.arange(50) >= 30  # not there before
    total = sums(X[:30], Y[:30][:, [2, 0]], weights[:30])
    total.rearrange([2, 0], 3)
    total.add(X[30:], Y[30:], weights[30:])
    torch.testing.assert_close(total.joint, sums(X, Y, weights).joint, rtol=1e-12, atol=1e-12)


def test_a_target_that_is_always_zero():
    X, Y, weights = rows(50)
    Y[:, 1] = 0
    equations = NormalEquations(PENALTY)
    for _ in range(2):
        found = equations.solve(sums(X, Y, weights))
        assert (found[:, 1] == 0).all()
        np.testing.assert_allclose(found[:, 0], reference(X, Y, weights)[:, 0], rtol=1e-9)


def test_folds_are_left_out_in_turn():
    X, Y, _ = rows(30)
    equations, total = NormalEquations(PENALTY), sums(X, Y, torch.ones(30))
    folds = np.array([0, 1, 1, 0, 2, 0, 3, 3])
    found = equations.held_out(total, X[:8], Y[:8], folds)
    for fold in range(4):
        left_out = np.flatnonzero(folds == fold)
        weights = torch.ones(len(left_out))
        total.subtract(X[left_out], Y[left_out], weights)
        solution = NormalEquations(PENALTY).solve(total)
        expected = solution[0] + X[left_out] @ solution[1:]
        torch.testing.assert_close(found[left_out], expected, rtol=1e-9, atol=1e-9)
        total.add(X[left_out], Y[left_out], weights)


def test_nothing_left():
    X, Y, weights = rows(3)
    total = sums(X, Y, weights)
    total.subtract(X[:2], Y[:2], weights[:2])
    with pytest.raises(ValueError, match="`X` must be among the 1 sequences that were learned, got 2"):
        total.check_removable(2)
    total.subtract(X[2:], Y[2:], weights[2:])
    with pytest.raises(ValueError, match="the sums must hold at least one sequence, got none"):
        NormalEquations(PENALTY).solve(total)
