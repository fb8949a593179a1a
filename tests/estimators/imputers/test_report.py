import numpy as np
import pytest

from seq2tens.data import Sequences
from seq2tens.estimators import LinearImputer, imputation_report
from seq2tens.estimators.imputers.report import gap_lengths

NAN = np.nan


def sequences(*rows):
    return Sequences.from_list([np.array(row, dtype=float)[:, None] for row in rows])


def test_gap_lengths():
    X = sequences([NAN, 1, NAN, NAN, 2, NAN], [NAN, NAN], [3], [NAN, 4])
    assert gap_lengths(X).ravel().tolist() == [1, 0, 2, 2, 0, 1, 2, 2, 0, 1, 0]


def test_errors_by_channel_and_gap():
    truth = Sequences.from_list([np.array([[0.0, 0.0], [2, 1], [0, 2], [0, 9], [6, 4], [10, 5]])])
    given = truth.values.copy()
    given[1, 0], given[3:5, 1] = NAN, NAN
    X = truth.with_values(given)
    imputer = LinearImputer().fit(truth)
    report = imputation_report(imputer, X, truth, channels=["a", "b"])
    rows = list(zip(*report.columns.values(), strict=True))
    assert [row[:3] for row in rows] == [
        ("all", "all", 3),
        ("all", "1", 1),
        ("all", "2-3", 2),
        ("a", "all", 1),
        ("a", "1", 1),
        ("b", "all", 2),
        ("b", "2-3", 2),
    ]
    errors = np.array([2.0, 6.0, 0.0])  # of lines: 0 for 2, then 3 for 9 and 4 for 4
    scale = imputer.scaler_.scale_[[0, 1, 1]]
    assert rows[3][3] == pytest.approx(2)
    assert rows[5][3] == pytest.approx(3)
    assert rows[0][4] == pytest.approx((errors / scale).mean())
    low, high = imputer.predict_interval(X, 0.9)
    hidden = np.isnan(given)
    inside = (truth.values >= low.values) & (truth.values <= high.values)
    assert rows[0][5] == pytest.approx(inside[hidden].mean())
    widths = ((high.values - low.values) / imputer.scaler_.scale_)[hidden]
    assert rows[0][6] == pytest.approx(widths.mean())
    assert np.isnan(rows[0][3])
    text = str(report).splitlines()
    assert len(text) == len(rows) + 1
    assert text[0].split()[:3] == ["channel", "gap", "entries"]


def test_entries_are_hidden_where_there_is_no_truth():
    X = sequences(np.arange(40.0), np.arange(40.0) ** 2)
    report = imputation_report(LinearImputer().fit(X), X, random_state=1)
    assert report.columns["entries"][0] == 8
    with pytest.raises(ValueError, match="needs at least one entry to compare, got none"):
        imputation_report(LinearImputer().fit(X), X, X)
    with pytest.raises(ValueError, match="`truth` must have the steps of `X`"):
        imputation_report(LinearImputer().fit(X), X, sequences([1.0]))
