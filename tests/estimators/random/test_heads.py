"""Models of scikit-learn in the place of ridge regression."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier

from estimator_contract import problem
from seq2tens.estimators import RandomLS2TClassifier, RandomLS2TRegressor


def make(head, **changes):
    return RandomLS2TClassifier(**{"n_blocks": 2, "random_state": 0, "head": head, **changes})


@pytest.mark.parametrize("head", [LogisticRegression(), KNeighborsClassifier(3), RidgeClassifier()])
def test_any_classifier(head):
    X, y = problem(60)
    new, labels = problem(40, seed=1)
    model = make(head).fit(X, y)
    assert model.score(new, labels) > 0.9
    probabilities = model.predict_proba(new)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(new), model.classes_[probabilities.argmax(axis=1)])
    assert not hasattr(head, "classes_")  # a copy was fitted


def test_it_is_the_head_on_standardised_features():
    X, y = problem(60)
    model = make(LogisticRegression()).fit(X, y)
    table = model.features_.transform(X)
    centered = (table - table.mean(axis=0)) / np.where(table.std(axis=0) > 1e-5, table.std(axis=0), np.inf)
    expected = LogisticRegression().fit(centered, y).predict_proba(centered)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-3)


def test_weights_reach_it():
    X, y = problem(60)
    both, labels = [*X, *X], np.concatenate([y, np.where(y == "up", "down", "up")])
    weights = np.repeat([1.0, 1e-6], 60)
    assert make(LogisticRegression()).fit(both, labels, weights).score(X, y) == 1


def test_a_regressor():
    rng = np.random.default_rng(0)
    y = rng.uniform(10, 20, size=80)
    X = [np.cumsum(rng.normal(v, 2, size=(2, 12)), axis=1) for v in y]
    head = RandomForestRegressor(20, random_state=0)
    model = RandomLS2TRegressor(n_blocks=2, random_state=0, head=head).fit(X, y)
    assert model.score(X, y) > 0.8


def test_its_arguments_can_be_searched():
    X, y = problem(30)
    search = GridSearchCV(make(LogisticRegression(), n_blocks=1), {"head__C": [0.01, 1.0]}, cv=2).fit(X, y)
    assert search.best_params_["head__C"] == search.best_estimator_.head.C
    assert clone(make(LogisticRegression(C=3.0))).head.C == 3.0


def test_what_only_the_ridge_can_do(tmp_path):
    X, y = problem(30)
    model = make(LogisticRegression()).fit(X, y)
    for call in (model.explain, lambda: model.predict_set(X), lambda: model.save(tmp_path / "model")):
        with pytest.raises(
            ValueError, match=r"`head` must be None \(ridge regression\) for this method, got L"
        ):
            call()
    with pytest.raises(ValueError, match="`head` and `class_weight` must be None to update a model, got Log"):
        make(LogisticRegression()).partial_fit(X, y)
    with pytest.raises(ValueError, match="`head` must be a classifier or regressor of scikit-learn, got 'sv"):
        make("svm").fit(X, y)
