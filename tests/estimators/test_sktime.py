import importlib
import sys

import numpy as np
import pandas as pd
import pytest

from estimator_contract import problem, with_gaps
from seq2tens.data import Sequences, from_aeon, to_df_list
from seq2tens.estimators import (
    DeepLS2TClassifier,
    LinearImputer,
    RandomLS2TClassifier,
    RandomLS2TFeatures,
    RandomLS2TRegressor,
)

pytest.importorskip("sktime", reason="the extra [sktime] is not installed")

from sktime.utils.estimator_checks import check_estimator

from seq2tens.estimators.sktime import SktimeClassifier, SktimeFeatures, SktimeImputer, SktimeRegressor


def small():
    return DeepLS2TClassifier(epochs=1, width=3, depth=1, random_state=0, device="cpu")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [SktimeClassifier, SktimeRegressor, SktimeFeatures, SktimeImputer])
def test_conventions_of_sktime(kind):
    results = check_estimator(kind, raise_exceptions=True, verbose=False)
    assert len(results) > 80
    assert set(results.values()) == {"PASSED"}


def test_the_same_predictions():
    X, y = problem()
    frames = to_df_list(from_aeon(X))
    wrapped, plain = SktimeClassifier(small()).fit(frames, y), small().fit(X, y)
    np.testing.assert_array_equal(wrapped.predict_proba(frames), plain.predict_proba(X))
    np.testing.assert_array_equal(wrapped.predict(frames), plain.predict(X))
    assert not wrapped.estimator.is_fitted


def test_random_features_numbers_and_tables():
    X, y = problem()
    frames, slopes = to_df_list(from_aeon(X)), np.array([x.mean() for x in X])
    classifier = RandomLS2TClassifier(n_blocks=1, random_state=0)
    wrapped = SktimeClassifier(classifier).fit(frames, y)
    np.testing.assert_array_equal(wrapped.predict_proba(frames), classifier.fit(X, y).predict_proba(X))
    regressor = RandomLS2TRegressor(n_blocks=1, random_state=0)
    told = SktimeRegressor(regressor).fit(frames, slopes).predict(frames)
    np.testing.assert_array_equal(told, regressor.fit(X, slopes).predict(X))
    features = RandomLS2TFeatures(n_blocks=1, random_state=0)
    table = SktimeFeatures(features).fit_transform(frames)
    np.testing.assert_array_equal(table.to_numpy(), features.fit_transform(X))
    assert table.columns.tolist() == features.get_feature_names_out().tolist()


def test_imputers_keep_index_and_columns():
    X, _ = problem()
    frames = [
        pd.DataFrame(x.T, columns=["heat", "wind"], index=pd.RangeIndex(x.shape[1])) for x in with_gaps(X)
    ]
    found = SktimeImputer(LinearImputer()).fit_transform(frames)
    expected = LinearImputer().fit(frames).transform(frames)
    for one, other in zip(found, expected, strict=True):
        pd.testing.assert_frame_equal(one, other)
        assert not one.isna().any(axis=None)


DAY = 24 * 3600


@pytest.mark.parametrize(
    ("unit", "as_index"),
    [
        (1, lambda days: days),
        (DAY, lambda days: pd.Timestamp("2020-01-30") + pd.to_timedelta(days, unit="D")),
        (DAY, lambda days: (pd.Timestamp("2020-01-30") + pd.to_timedelta(days, unit="D")).to_period("D")),
    ],
    ids=["integers", "dates", "periods"],
)
def test_times_of_the_index(unit, as_index):
    X, y = problem()
    plain = from_aeon(X)
    days = [np.cumsum(1 + np.arange(n)) for n in plain.lengths]
    timed = Sequences(plain.values, plain.offsets, unit * np.concatenate(days).astype(float))
    frames = [pd.DataFrame(x.T, index=as_index(clock)) for x, clock in zip(X, days, strict=True)]
    expected = small().fit(timed, y).predict_proba(timed)
    found = SktimeClassifier(small(), times=True).fit(frames, y).predict_proba(frames)
    np.testing.assert_array_equal(found, expected)
    without = SktimeClassifier(small()).fit(frames, y).predict_proba(frames)
    np.testing.assert_array_equal(without, small().fit(X, y).predict_proba(X))


def test_without_sktime_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sktime.classification.base", None)
    monkeypatch.delitem(sys.modules, "seq2tens.estimators.sktime")
    with pytest.raises(ImportError, match=r"pip install 'seq2tens\[sktime\]'"):
        importlib.import_module("seq2tens.estimators.sktime")
