import importlib
import sys

import numpy as np
import pandas as pd
import pytest

from estimator_contract import problem
from seq2tens.data import Sequences, from_aeon, to_df_list
from seq2tens.estimators import DeepLS2TClassifier

pytest.importorskip("sktime", reason="the extra [sktime] is not installed")

from sktime.utils.estimator_checks import check_estimator

from seq2tens.estimators.sktime import SktimeClassifier


def small():
    return DeepLS2TClassifier(epochs=1, width=3, depth=1, random_state=0, device="cpu")


@pytest.mark.slow
def test_conventions_of_sktime():
    results = check_estimator(SktimeClassifier, raise_exceptions=True, verbose=False)
    assert len(results) > 100
    assert set(results.values()) == {"PASSED"}


def test_the_same_predictions():
    X, y = problem()
    frames = to_df_list(from_aeon(X))
    wrapped, plain = SktimeClassifier(small()).fit(frames, y), small().fit(X, y)
    np.testing.assert_array_equal(wrapped.predict_proba(frames), plain.predict_proba(X))
    np.testing.assert_array_equal(wrapped.predict(frames), plain.predict(X))
    assert not wrapped.estimator.is_fitted


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
