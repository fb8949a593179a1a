"""The manners of scikit-learn: names of columns, frames, routed weights, its checks where its input fits."""

import numpy as np
import pandas as pd
import polars
import pytest
import sklearn
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from estimator_contract import problem, rich, with_gaps
from seq2tens.data import from_aeon, to_multiindex
from seq2tens.estimators import (
    DeepLS2TClassifier,
    LS2TFeatures,
    RandomLS2TClassifier,
    RandomLS2TFeatures,
    RandomLS2TRegressor,
    Seq2TensFeatures,
)

MAPS = [
    RandomLS2TFeatures(n_blocks=1, random_state=0),
    LS2TFeatures(width=3, order=2, random_state=0),
    Seq2TensFeatures(order=2),
]


@pytest.mark.parametrize("features", MAPS, ids=lambda features: type(features).__name__)
class TestFeatureMaps:
    def test_every_column_has_a_name_of_its_own(self, features):
        X, _ = problem()
        fitted = sklearn.clone(features).fit(X)
        names = fitted.get_feature_names_out()
        assert names.dtype == object
        assert len(set(names)) == len(names) == fitted.transform(X).shape[1]

    def test_names_are_known_after_fit(self, features):
        with pytest.raises(sklearn.exceptions.NotFittedError):
            sklearn.clone(features).get_feature_names_out()

    @pytest.mark.parametrize("kind", ["list", "array", "multiindex"])
    def test_tables_as_frames(self, features, kind):
        X, _ = problem(shortest=6, longest=6)
        forms = {"list": X, "array": np.stack(X), "multiindex": to_multiindex(from_aeon(X))}
        plain = sklearn.clone(features).fit_transform(forms[kind])
        framed = sklearn.clone(features).set_output(transform="pandas")
        for frame in (framed.fit_transform(forms[kind]), framed.transform(forms[kind])):
            assert isinstance(frame, pd.DataFrame)
            assert frame.columns.tolist() == framed.get_feature_names_out().tolist()
            assert frame.index.tolist() == list(range(len(X)))
            np.testing.assert_array_equal(frame.to_numpy(), plain)
        polar = framed.set_output(transform="polars").transform(forms[kind])
        assert isinstance(polar, polars.DataFrame)
        np.testing.assert_array_equal(polar.to_numpy(), plain)

    def test_frames_through_a_pipeline(self, features):
        X, _ = problem()
        pipeline = make_pipeline(sklearn.clone(features), StandardScaler()).set_output(transform="pandas")
        frame = pipeline.fit_transform(X)
        assert frame.columns.tolist() == pipeline.get_feature_names_out().tolist()


def test_words_are_made_of_the_names_of_columns():
    X, _ = problem()
    frames = [pd.DataFrame(x.T, columns=["heat", "wind"]) for x in X]
    names = Seq2TensFeatures(order=2, time=False).fit(frames).get_feature_names_out()
    assert names.tolist() == ["heat", "wind", "heat*heat", "heat*wind", "wind*heat", "wind*wind"]
    unnamed = Seq2TensFeatures(order=1).fit(with_gaps(X)).get_feature_names_out()
    assert unnamed.tolist() == ["position", "x0", "x1", "observed x0", "observed x1"]
    sequences, _ = rich()
    everything = Seq2TensFeatures(order=1, time=False).fit(sequences).get_feature_names_out()
    assert everything.tolist() == ["x0", "x1", "observed x0", "observed x1", "time", "static 0", "static 1"]


def test_a_word_is_in_the_column_of_its_name():
    """Of a path that goes along the first axis and then along the second, `a*b` is 1 and `b*a` is 0."""
    X = [np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])]
    fitted = Seq2TensFeatures(order=2, time=False, scaling=None).fit(X)
    found = dict(zip(fitted.get_feature_names_out(), fitted.transform(X)[0], strict=True))
    assert (found["x0*x1"], found["x1*x0"]) == (1, 0)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize(
    "model",
    [
        RandomLS2TClassifier(n_blocks=1, random_state=0),
        DeepLS2TClassifier(epochs=1, width=3, depth=1, random_state=0, device="cpu"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_weights_are_routed(routing, model):
    X, y = problem()
    weights = np.random.default_rng(0).uniform(0.1, 5, len(y))
    model = sklearn.clone(model).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    sequences = from_aeon(X)
    found = cross_validate(
        model,
        sequences,
        y,
        cv=3,
        params={"sample_weight": weights},
        return_estimator=True,
        return_indices=True,
    )
    for i, (train, test) in enumerate(
        zip(*(found["indices"][half] for half in ("train", "test")), strict=True)
    ):
        expected = sklearn.clone(model).fit(sequences[train], y[train], weights[train])
        chances = expected.predict_proba(sequences)
        np.testing.assert_array_equal(found["estimator"][i].predict_proba(sequences), chances)
        right = (expected.predict(sequences[test]) == y[test]) @ weights[test] / weights[test].sum()
        assert found["test_score"][i] == pytest.approx(right)


def test_weights_of_regressors():
    """A weight counts as so many rows do, but for the calibration of the features, which looks at rows."""
    X, _ = problem(n=60)
    y = np.array([x.mean() for x in X])
    wrong = y.copy()
    trusted = (np.arange(len(y)) // 2 % 2).astype(float)
    wrong[trusted == 0] += 50
    model = RandomLS2TRegressor(n_blocks=2, random_state=0)
    assert sklearn.clone(model).fit(X, wrong, trusted).score(X, y) > 0.8
    assert sklearn.clone(model).fit(X, wrong).score(X, y) < 0
    fitted = sklearn.clone(model).fit(X, y)
    weighted = fitted.score(X, y, sample_weight=trusted)
    some = np.flatnonzero(trusted)
    assert weighted == pytest.approx(fitted.score([X[i] for i in some], y[some]))


class TestSeveralTargets:
    def fitted(self, y=None):
        X, _ = problem()
        both = np.array([[x.mean(), 100 + 10 * x.std(), 7.0] for x in X]) if y is None else y
        return RandomLS2TRegressor(n_blocks=2, random_state=0).fit(X, both), X, both

    def test_predictions_have_the_shape_of_y(self, tmp_path):
        model, X, y = self.fitted()
        found = model.predict(X)
        assert found.shape == y.shape
        np.testing.assert_allclose(found[:, 2], 7)  # a target that does not vary
        assert model.score(X, y) > 0.5
        model.save(tmp_path / "m")
        np.testing.assert_array_equal(RandomLS2TRegressor.load(tmp_path / "m").predict(X), found)

    def test_one_column_is_not_one_number(self):
        _, X, y = self.fitted()
        one, column = self.fitted(y[:, 0])[0].predict(X), self.fitted(y[:, :1])[0].predict(X)
        assert one.shape == (len(X),)
        np.testing.assert_array_equal(column, one[:, None])

    @pytest.mark.parametrize(
        ("spoil", "message"),
        [
            (lambda y: y[:-1], "`y` must have 24 rows, one for each sequence of `X`, got 23"),
            (
                lambda y: y[None],
                r"`y` must have the axes \(sequences,\) or \(sequences, targets\), got shape",
            ),
            (lambda y: np.where(y > 100, np.nan, y), "`y` must be finite, got nan at index"),
            (lambda y: ["high"] * 24, "`y` must hold numbers, got .*high"),
        ],
    )
    def test_targets_that_cannot_be_learned(self, spoil, message):
        _, _, y = self.fitted()
        with pytest.raises(ValueError, match=message):
            self.fitted(spoil(y))


AEON = "`is_fitted` is an attribute of aeon's base class"
SEQUENCES = "rows are sequences of one channel, which may have any length later on"
KINDS = "lists of lists, objects, complex and single rows are no collection of sequences, and refused"
SENTENCES = "refused with a sentence of our own"
FLOATS = "features are computed in float32"
SUMS = "`fit` keeps no sums, so `partial_fit` after it is refused; classes need not be told in advance"
EXCEPTIONS = {
    "check_fit_score_takes_y": SUMS,
    "check_estimators_partial_fit_n_features": SUMS,
    "check_no_attributes_set_in_init": AEON,
    "check_dont_overwrite_parameters": AEON,
    "check_n_features_in_after_fitting": SEQUENCES,
    "check_n_features_in": SEQUENCES,
    "check_transformer_general": SEQUENCES,
    "check_sample_weights_pandas_series": KINDS,
    "check_sample_weights_not_an_array": KINDS,
    "check_complex_data": KINDS,
    "check_dtype_object": KINDS,
    "check_classifier_data_not_an_array": KINDS,
    "check_regressor_data_not_an_array": KINDS,
    "check_transformer_data_not_an_array": KINDS,
    "check_classifiers_train": KINDS,
    "check_regressors_train": KINDS,
    "check_fit1d": KINDS,
    "check_fit2d_predict1d": KINDS,
    "check_estimators_empty_data_messages": SENTENCES,
    "check_fit2d_1sample": SENTENCES,
    "check_requires_y_none": SENTENCES,
    "check_supervised_y_2d": "a column is as many targets as it has, one; labels have one axis",
    "check_sample_weight_equivalence_on_dense_data": "features are calibrated with rows, not with weights",
    "check_transformer_preserve_dtypes": FLOATS,
    "check_methods_subset_invariance": FLOATS,
}


# scikit-learn casts infinite labels before it refuses them
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@pytest.mark.slow
@parametrize_with_checks(
    [
        RandomLS2TClassifier(n_blocks=1, random_state=0),
        RandomLS2TRegressor(n_blocks=1, random_state=0),
        *MAPS[:2],
        Seq2TensFeatures(order=1),
    ],
    expected_failed_checks=lambda estimator: EXCEPTIONS,
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)
