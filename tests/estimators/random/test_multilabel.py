"""Labels that do not exclude each other, with the conventions of scikit-learn."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from seq2tens import estimators
from seq2tens.estimators import RandomLS2TClassifier


def bumps(n, seed):
    """A bump in each channel that has its label, in the third never."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=(n, 3))
    y[:, 2] = 0
    X = rng.normal(scale=0.3, size=(n, 3, 30))
    X[:, :, 12] += 3 * y
    return X, y


def fitted(n=80):
    return RandomLS2TClassifier(n_blocks=4, random_state=0).fit(*bumps(n, 0))


def test_labels_are_told_one_by_one():
    model = fitted()
    X, y = bumps(200, 1)
    predicted = model.predict(X)
    assert predicted.shape == y.shape
    assert predicted.dtype.kind == "i"
    assert (predicted == y).mean() > 0.97
    assert model.score(X, y) == (predicted == y).all(axis=1).mean()  # subset accuracy, as in scikit-learn
    assert model.score(X, y, metric=lambda true, told: f1_score(true, told, average="micro")) > 0.95
    assert model.classes_.tolist() == [0, 1, 2]


def test_probabilities_are_those_of_each_label():
    X, y = bumps(400, 1)
    chances = fitted().predict_proba(X)
    assert chances.shape == y.shape
    assert ((chances > 0.5) == fitted().predict(X)).all()
    assert (chances.sum(axis=1) > 1.2).any()  # labels do not exclude each other
    assert chances[:, 2].max() < 0.5
    np.testing.assert_allclose(chances.mean(axis=0), y.mean(axis=0), atol=0.05)


def test_one_column_is_the_classifier_of_two_classes():
    X, y = bumps(60, 0)
    several = RandomLS2TClassifier(n_blocks=2, random_state=0).fit(X, y[:, :1])
    one = RandomLS2TClassifier(n_blocks=2, random_state=0).fit(X, y[:, 0])
    np.testing.assert_array_equal(several.predict(X)[:, 0], one.predict(X))
    coefficients = one.ridge_.coefficients[:, 1:]
    np.testing.assert_allclose(several.ridge_.coefficients, coefficients, atol=1e-6)


def test_after_loading(tmp_path):
    model, (X, _) = fitted(), bumps(20, 1)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(
        estimators.load(tmp_path / "model").predict_proba(X), model.predict_proba(X)
    )


def test_a_new_fit_forgets_that_there_were_several():
    X, y = bumps(40, 0)
    assert fitted().fit(X, y[:, 0]).predict(X).shape == (40,)


def test_folds_by_scikit_learn():
    X, y = bumps(40, 0)
    model = RandomLS2TClassifier(n_blocks=2, random_state=0)
    assert model.fit_predict(X, y, cv_size=3).shape == y.shape
    assert model.fit_predict_proba(X, y, cv_size=3).shape == y.shape


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda X, y: RandomLS2TClassifier().fit(X, 2 * y),
            r"`y` with two axes must hold 0 and 1 only, got \[2\]",
        ),
        (lambda X, y: RandomLS2TClassifier().fit(X, y[:3]), "`y` must have 30 rows, one for each .* got 3"),
        (
            lambda X, y: RandomLS2TClassifier().fit(X, y[:, :0]),
            r"`y` must have at least one label, got shape",
        ),
        (
            lambda X, y: RandomLS2TClassifier(head=LogisticRegression()).fit(X, y),
            "`head` and .* must be None",
        ),
        (lambda X, y: RandomLS2TClassifier(class_weight="balanced").fit(X, y), "`class_weight` must be None"),
        (
            lambda X, y: RandomLS2TClassifier(n_blocks=1).fit(X, y).predict_set(X),
            "`y` must have one label per",
        ),
        (lambda X, y: RandomLS2TClassifier().partial_fit(X, y), "`y` must have one axis, got shape"),
    ],
)
def test_refusals(change, message):
    with pytest.raises(ValueError, match=message):
        change(*bumps(30, 0))
