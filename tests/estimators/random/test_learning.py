"""Learning on: what was added, taken away and merged is what a new fit to the rest would be."""

import copy
import pickle

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge as Reference

from estimator_contract import problem, with_gaps
from seq2tens import estimators
from seq2tens.data import from_aeon
from seq2tens.estimators import RandomLS2TClassifier, RandomLS2TRegressor
from seq2tens.estimators.random import ridge


def classifier(**changes):
    return RandomLS2TClassifier(**{"random_state": 0, "n_blocks": 1, "order": 2, **changes})


def regressor(**changes):
    return RandomLS2TRegressor(**{"random_state": 0, "n_blocks": 1, "order": 2, **changes})


def three_classes(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = np.array(["down", "level", "up"])[np.arange(n) % 3]
    slope = np.array([-0.3, 0.0, 0.3])[np.arange(n) % 3]
    X = [
        s * np.arange(k) + rng.normal(size=(2, k)) for s, k in zip(slope, rng.integers(6, 12, n), strict=True)
    ]
    return X, y


def take(X, rows):
    return [X[i] for i in rows]


def coefficients(model):
    return np.concatenate([model.ridge_.intercept[None], model.ridge_.coefficients])


def assert_same(model, other):
    np.testing.assert_allclose(coefficients(model), coefficients(other), rtol=1e-6, atol=1e-6)


def reference(model, X, targets):
    """scikit-learn's coefficients, in float64, with the frozen scales and the same penalty."""
    table = ridge.standardize(model._table(from_aeon(X)), *model.scales_).double().numpy()
    fitted = Reference(alpha=model.ridge_.penalty * table.shape[1], solver="cholesky").fit(table, targets)
    return np.concatenate([fitted.intercept_[None], fitted.coef_.T])


def test_a_mix_of_additions_and_removals_is_a_new_fit():
    X, y = three_classes(200)
    begun = classifier().calibrate(X[:60], y[:60])
    model, present, rng = (
        copy.deepcopy(begun).partial_fit(X[:100], y[:100]),
        set(range(100)),
        np.random.default_rng(0),
    )
    for _ in range(125):
        away = rng.choice(sorted(present), size=4, replace=False)
        model.forget(take(X, away), y[away])
        more = rng.choice(sorted(set(range(200)) - present), size=4, replace=False)
        model.partial_fit(take(X, more), y[more])
        present = present - set(away.tolist()) | set(more.tolist())
    left = sorted(present)
    fresh = copy.deepcopy(begun).partial_fit(take(X, left), y[left])
    assert_same(model, fresh)
    targets = 2.0 * (y[left][:, None] == model.classes_) - 1
    np.testing.assert_allclose(coefficients(model), reference(model, take(X, left), targets), atol=1e-6)


def test_it_predicts_like_a_fit():
    X, y = three_classes(300)
    new, labels = three_classes(90, seed=1)
    model = classifier(n_blocks=4)
    for rows in np.array_split(np.arange(300), 3):
        model.partial_fit(take(X, rows), y[rows])
    assert model.score(new, labels) > 0.8
    np.testing.assert_allclose(model.predict_proba(new).sum(axis=1), 1)
    assert abs(model.score(new, labels) - classifier(n_blocks=4).fit(X, y).score(new, labels)) < 0.06


def test_ten_merged_parts_are_the_pooled_fit():
    X, y = three_classes(200)
    begun = classifier().calibrate(X[:90], y[:90])
    parts = [
        copy.deepcopy(begun).partial_fit(take(X, rows), y[rows])
        for rows in np.array_split(np.arange(200), 10)
    ]
    merged = parts[0]
    for part in parts[1:]:
        before = coefficients(part)
        merged.merge(part)
        np.testing.assert_array_equal(coefficients(part), before)
    assert_same(merged, copy.deepcopy(begun).partial_fit(X, y))


def test_classes_that_come_later():
    X, y = three_classes(150)
    early = np.flatnonzero(y != "level")
    late = np.flatnonzero(y == "level")
    begun = classifier().calibrate(take(X, early), y[early])
    model = copy.deepcopy(begun).partial_fit(take(X, early), y[early])
    assert model.classes_.tolist() == ["down", "up"]
    model.partial_fit(take(X, late), y[late])
    assert model.classes_.tolist() == ["down", "level", "up"]
    at_once = copy.deepcopy(begun).partial_fit(X, y)
    assert_same(model, at_once)
    assert model.score(X, y) > 0.7
    other = copy.deepcopy(begun).partial_fit(take(X, late), y[late])
    assert_same(copy.deepcopy(begun).partial_fit(take(X, early), y[early]).merge(other), at_once)


def test_a_class_that_is_forgotten_is_not_predicted():
    X, y = three_classes(150)
    level = np.flatnonzero(y == "level")
    model = classifier().partial_fit(X, y).forget(take(X, level), y[level])
    assert "level" not in model.predict(X)


def test_sequences_alone_are_those_of_a_batch():
    """Features do not depend on company, so what was added in one batch can be taken away one by one."""
    X, y = three_classes(60)
    begun = classifier(n_blocks=4, order=3).calibrate(X, y)
    model = copy.deepcopy(begun).partial_fit(X, y)
    for i in range(20):
        model.forget([X[i]], y[i : i + 1])
    assert_same(model, copy.deepcopy(begun).partial_fit(X[20:], y[20:]))


def test_regression():
    rng = np.random.default_rng(0)
    y = rng.uniform(10, 20, size=120)
    X = with_gaps([np.cumsum(rng.normal(v, 2, size=(2, rng.integers(8, 20))), axis=1) for v in y])
    begun = regressor().calibrate(X[:50], y[:50])
    model = copy.deepcopy(begun).partial_fit(X, y).forget(X[:30], y[:30])
    assert_same(model, copy.deepcopy(begun).partial_fit(X[30:], y[30:]))
    assert model.score(X[30:], y[30:]) > 0.5
    other = copy.deepcopy(begun).partial_fit(X[:30], y[:30])
    assert_same(model.merge(other), copy.deepcopy(begun).partial_fit(X, y))


@pytest.mark.parametrize("keep", ["saved", "pickled"])
def test_it_learns_on_after_it_was_put_away(keep, tmp_path):
    X, y = three_classes(120)
    model = classifier().partial_fit(X[:60], y[:60])
    if keep == "saved":
        model.save(tmp_path / "model")
        again = estimators.load(tmp_path / "model")
    else:
        again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert_same(
        again.partial_fit(X[60:], y[60:]).forget(X[:9], y[:9]),
        model.partial_fit(X[60:], y[60:]).forget(X[:9], y[:9]),
    )
    fresh = classifier(random_state=1).partial_fit(X, y)
    with pytest.raises(ValueError, match="`other` must start from a copy of this model after `calibrate`"):
        again.merge(fresh)


def test_calibrate_without_labels_leaves_the_penalty_to_the_first():
    X, y = three_classes(90)
    model = classifier().calibrate(X).partial_fit(X, y)
    assert_same(model, classifier().partial_fit(X, y))
    penalty = model.ridge_.penalty
    assert model.partial_fit(X, y[::-1].copy()).ridge_.penalty == penalty


@pytest.mark.parametrize("wrong", ["label", "number"])
def test_what_is_refused_changes_nothing(wrong, monkeypatch):
    monkeypatch.setattr(ridge, "BATCH", 4)  # what is wrong comes after the first batch
    X, y = three_classes(30)
    model = classifier().partial_fit(X, y)
    before = copy.deepcopy(model.moments_)
    rows = [*X[:9], *X] if wrong == "number" else X[:9]
    labels = np.concatenate([y[:9], y]) if wrong == "number" else np.append(y[:8], "sideways")
    with pytest.raises(ValueError, match=r"`X` must be among the 30|`y` must hold classes that were learned"):
        model.forget(rows, labels)
    assert torch.equal(model.moments_.second, before.second)
    assert model.moments_.rows == 30


def test_regressors_that_standardise_targets_by_themselves_can_be_merged():
    rng = np.random.default_rng(0)
    y = np.arange(40.0) + rng.normal(size=40)
    X = [value + rng.normal(size=(2, 9)) for value in y]
    start = regressor().calibrate(X)
    first, second, pooled = (copy.deepcopy(start) for _ in range(3))
    first.partial_fit(X[:20], y[:20])
    second.partial_fit(X[20:], y[20:])
    assert second.level_ != first.level_
    pooled.partial_fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    assert_same(first.merge(second), pooled)


def test_after_an_error_in_the_first_call_nothing_is_frozen():
    X, y = three_classes(30)
    model = classifier()
    with pytest.raises(ValueError, match="`y` must have at least 2 classes"):
        model.partial_fit([100 * x for x in X[:2]], ["up", "up"])
    assert_same(model.partial_fit(X, y), classifier().partial_fit(X, y))


def test_the_last_sequence_cannot_be_forgotten():
    X, y = three_classes(30)
    model = classifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="`X` must leave a sequence that was learned, got all 30"):
        model.forget(X, y)
    assert model.moments_.rows == 30
    assert_same(model.forget(X[:15], y[:15]), classifier().calibrate(X, y).partial_fit(X[15:], y[15:]))


@pytest.mark.parametrize("other", [regressor(), 3])
def test_only_models_of_one_kind_are_merged(other):
    X, y = three_classes(30)
    if other != 3:
        other.partial_fit(X, np.arange(30.0))
    with pytest.raises(ValueError, match=r"`other` must be a RandomLS2TClassifier, got (RandomLS2TR|int)"):
        classifier().partial_fit(X, y).merge(other)


def test_errors():
    X, y = problem()
    fitted = classifier().fit(X, y)
    with pytest.raises(ValueError, match="got a model of `fit`, which keeps no sums"):
        fitted.partial_fit(X, y)
    with pytest.raises(
        ValueError, match="must be fitted by `partial_fit` or `fit_parts` for this, got one without"
    ):
        fitted.forget(X, y)
    with pytest.raises(ValueError, match=r"`y` must have at least 2 classes, got \['up'\]"):
        classifier().partial_fit(X, np.full(24, "up"))
    with pytest.raises(
        ValueError, match="`head` and `class_weight` must be None to update a model, got None and 'balanced'"
    ):
        classifier(class_weight="balanced").partial_fit(X, y)
    model = classifier().partial_fit(X, y)
    with pytest.raises(ValueError, match=r"`y` must hold classes that were learned, got \['left'\]"):
        model.forget(X[:1], ["left"])
    with pytest.raises(ValueError, match="`y` must hold labels of the same type as before, <U4, got int64"):
        model.partial_fit(X[:2], [0, 1])
    with pytest.raises(ValueError, match="`X` must have 2 channels as in `fit`, got 3"):
        model.partial_fit(problem(channels=3)[0], y)
    with pytest.raises(ValueError, match="`X` must be among the 24 sequences that were learned, got 48"):
        model.forget([*X, *X], np.concatenate([y, y]))
    with pytest.raises(ValueError, match="`y` must have 24 rows, one for each sequence of `X`, got 2"):
        regressor().partial_fit(X, [1.0, 2.0])
