"""Sets and intervals hold the truth as often as was asked, also after a model was put away."""

import numpy as np
import pytest
import torch

from seq2tens import estimators
from seq2tens.estimators import RandomLS2TClassifier, RandomLS2TRegressor
from seq2tens.estimators.random import conformal


def noisy_classes(n, seed):
    """Three classes, of which one cannot always be told from the next."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return rng.normal(0.25 * y[:, None, None], 1, size=(n, 1, 12)), np.array(["a", "b", "c"])[y]


def noisy_values(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.uniform(10, 20, size=n)
    return rng.normal(0.2 * y[:, None, None], 1, size=(n, 1, 12)), y


def classifier():
    return RandomLS2TClassifier(n_blocks=1, random_state=0)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_sets_cover(coverage):
    X, y = noisy_classes(400, 0)
    model = classifier().fit(X, y)
    new, labels = noisy_classes(2000, 1)
    sets = model.predict_set(new, coverage)
    assert sets.shape == (2000, 3)
    assert sets.dtype == bool
    covered = sets[np.arange(2000), np.searchsorted(model.classes_, labels)].mean()
    assert abs(covered - coverage) < 0.05
    assert 0.5 < sets.sum(axis=1).mean() < 2.9  # they say something


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_intervals_cover(coverage):
    X, y = noisy_values(400, 0)
    model = RandomLS2TRegressor(n_blocks=1, random_state=0).fit(X, y)
    new, values = noisy_values(2000, 1)
    low, high = model.predict_interval(new, coverage).T
    assert abs(np.mean((low <= values) & (values <= high)) - coverage) < 0.05
    np.testing.assert_allclose((low + high) / 2, model.predict(new), rtol=1e-6)
    assert (high - low).mean() < 10  # the width of all values


def test_they_are_nested():
    X, y = noisy_classes(100, 0)
    model = classifier().fit(X, y)
    narrow, wide = (model.predict_set(X, coverage) for coverage in (0.6, 0.9))
    assert (narrow <= wide).all()
    assert narrow.sum() < wide.sum()


def test_too_few_for_what_is_asked():
    """With 9 scores the largest is exceeded once in ten times: more cannot be promised."""
    scores = torch.arange(1.0, 10.0)[:, None]
    assert conformal.threshold(scores, 0.9).item() == 9
    assert conformal.threshold(scores, 0.91).item() == torch.inf
    assert conformal.threshold(scores, 0.1).item() == 1
    assert conformal.threshold(scores[:0], 0.1).item() == torch.inf
    X, y = noisy_classes(30, 0)
    assert classifier().fit(X, y).predict_set(X, 0.99).all()


@pytest.mark.parametrize("coverage", [0, 1, 1.5, -0.1, "0.9"])
def test_wrong_coverage(coverage):
    X, y = noisy_classes(30, 0)
    with pytest.raises(ValueError, match="`coverage` must be between 0 and 1, got"):
        classifier().fit(X, y).predict_set(X, coverage)


def test_after_loading(tmp_path):
    X, y = noisy_classes(100, 0)
    for model, method in (
        (classifier().fit(X, y), "predict_set"),
        (classifier().partial_fit(X, y), "predict_set"),
        (RandomLS2TRegressor(n_blocks=1, random_state=0).fit(*noisy_values(50, 0)), "predict_interval"),
    ):
        model.save(tmp_path / "model")
        again = estimators.load(tmp_path / "model")
        np.testing.assert_array_equal(getattr(again, method)(X, 0.8), getattr(model, method)(X, 0.8))
