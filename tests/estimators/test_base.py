"""The place of the estimators among those of aeon and scikit-learn."""

import sys

import numpy as np
import pytest
from aeon.base import BaseAeonEstimator
from aeon.classification.base import BaseClassifier
from aeon.transformations.collection.base import BaseCollectionTransformer
from sklearn.base import is_classifier

from estimator_contract import problem
from seq2tens import estimators
from seq2tens.estimators import FCNClassifier, MeanImputer, RandomLS2TClassifier, RandomLS2TFeatures

EVERY = [
    kind
    for kind in vars(estimators).values()
    if isinstance(kind, type) and issubclass(kind, BaseAeonEstimator)
]


marked = pytest.mark.skipif(sys.version_info < (3, 11), reason="final methods are marked since 3.11")


@marked
@pytest.mark.parametrize("kind", EVERY)
def test_final_methods_of_aeon_are_not_overridden(kind):
    final = [
        (name, method)
        for base in kind.__mro__
        if base.__module__.startswith("aeon.")
        for name, method in vars(base).items()
        if getattr(method, "__final__", False)
    ]
    assert all(getattr(kind, name) is method for name, method in final)


@marked
def test_the_test_of_final_methods_finds_one():
    class Wrong(BaseClassifier):
        def fit(self, X, y):
            return self

    with pytest.raises(AssertionError):
        test_final_methods_of_aeon_are_not_overridden(Wrong)


def test_they_pass_for_those_of_aeon_and_scikit_learn():
    assert len(EVERY) > 15
    for kind in (FCNClassifier, RandomLS2TClassifier):
        assert issubclass(kind, BaseClassifier)
        assert is_classifier(kind())
    for kind in (RandomLS2TFeatures, MeanImputer):
        assert isinstance(kind(), BaseCollectionTransformer)


def test_cross_validated_predictions():
    X, y = problem()
    model = RandomLS2TClassifier(n_blocks=2, random_state=0)
    told = model.fit_predict_proba(X, y, cv_size=3)
    assert model.is_fitted
    rows = np.arange(len(y)) < 8  # scikit-learn's first fold of three, whose classes alternate
    without = RandomLS2TClassifier(n_blocks=2, random_state=0).fit(
        [x for x, out in zip(X, rows, strict=True) if not out], y[~rows]
    )
    np.testing.assert_allclose(told[rows], without.predict_proba(X[:8]))
    np.testing.assert_array_equal(model.fit_predict(X, y, cv_size=3), model.classes_[told.argmax(axis=1)])


def test_cross_validation_needs_two_of_each_class():
    X, y = problem(n=4)
    with pytest.raises(
        ValueError, match="`cv_size` and the rows of each class in `y` must be at least 2, got 1"
    ):
        RandomLS2TClassifier(n_blocks=2).fit_predict(X[:3], y[:3])


def test_other_metrics():
    X, y = problem()
    model = RandomLS2TClassifier(n_blocks=2, random_state=0).fit(X, y)
    assert model.score(X, y, metric="balanced_accuracy") == model.score(X, y)
    with pytest.raises(ValueError, match="Metric nothing"):
        model.score(X, y, metric="nothing")
