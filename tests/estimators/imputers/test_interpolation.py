import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

from estimators.imputers.format_contract import gaps
from estimators.imputers.imputer_contract import ImputerContract
from seq2tens.data import Sequences
from seq2tens.estimators import ForwardImputer, LinearImputer, MeanImputer


class TestMean(ImputerContract):
    def make(self, **changes):
        return MeanImputer(**changes)

    def test_means_of_training(self):
        train, later = np.array([[[1.0, 2.0, np.nan, 6.0]]]), np.array([[[np.nan, 7.0]]])
        np.testing.assert_array_equal(MeanImputer().fit(train).transform(later), [[[3, 7]]])

    def test_intervals_are_quantiles_of_training(self):
        values = np.random.default_rng(0).exponential(size=(1, 1, 1000))
        low, high = MeanImputer().fit(values).predict_interval(np.array([[[np.nan]]]), 0.8)
        expected = np.quantile(values, [0.1, 0.9])
        np.testing.assert_allclose([low[0, 0, 0], high[0, 0, 0]], expected, rtol=1e-6)


class TestMeanOfTheSequence(ImputerContract):
    def make(self, **changes):
        return MeanImputer(over="sequence", **changes)

    test_conventions_of_aeon = None  # of the class, which was checked above

    def test_means_of_each_sequence(self):
        X = np.array([[[1.0, 3.0, np.nan]], [[np.nan, 8.0, np.nan]], [[np.nan] * 3]])
        filled = MeanImputer(over="sequence").fit_transform(X)
        np.testing.assert_array_equal(filled[:, 0], [[1, 3, 2], [8, 8, 8], [4, 4, 4]])

    def test_errors_are_those_of_the_mean_of_the_others(self):
        X = np.array([[[1.0, 3.0, 8.0]]])
        errors = MeanImputer(over="sequence").fit(X).errors_
        np.testing.assert_allclose(errors[[0, 500, 1000], 0], [-4.5, -1.5, 6])

    def test_unknown_kind_of_mean(self):
        with pytest.raises(ValueError, match="`over` must be one of 'data', 'sequence', got 'time'"):
            MeanImputer(over="time").fit(gaps())

    def test_search(self):
        search = GridSearchCV(MeanImputer(), {"over": ["data", "sequence"]}, cv=2)
        levels = np.random.default_rng(0).normal(scale=10, size=(12, 1, 1))
        X = levels + np.random.default_rng(1).normal(size=(12, 1, 20))
        assert search.fit(X).best_params_ == {"over": "sequence"}


class TestForward(ImputerContract):
    def make(self, **changes):
        return ForwardImputer(**changes)

    def test_values_are_carried_within_a_sequence(self):
        X = [np.array([[1.0, np.nan, np.nan]]), np.array([[np.nan, 5.0, np.nan, 6.0, np.nan]])]
        first, second = ForwardImputer().fit_transform(X)
        np.testing.assert_array_equal(first, [[1, 1, 1]])
        np.testing.assert_array_equal(second, [[4, 5, 5, 6, 6]])

    def test_errors_are_increments(self):
        X = np.array([[[1.0, 2.0, np.nan, 5.0]]])
        np.testing.assert_allclose(ForwardImputer().fit(X).errors_[[0, 500, 1000], 0], [1 - 8 / 3, 1, 3])


class TestLinear(ImputerContract):
    def make(self, **changes):
        return LinearImputer(**changes)

    def test_lines_in_steps_and_ends_carried(self):
        X = [np.array([[np.nan, 1.0, np.nan, np.nan, 4.0, np.nan]]), np.array([[np.nan, 7.0]])]
        first, second = LinearImputer().fit_transform(X)
        np.testing.assert_allclose(first, [[1, 1, 2, 3, 4, 4]])
        np.testing.assert_array_equal(second, [[7, 7]])

    def test_lines_in_time(self):
        values = np.array([[0.0], [np.nan], [10.0], [np.nan], [20.0]])
        times = np.array([0.0, 9.0, 10.0, 10.0, 10.0])
        filled = LinearImputer().fit_transform(Sequences(values, np.array([0, 5]), times))
        np.testing.assert_allclose(filled.values[:, 0], [0, 9, 10, 15, 20])

    def test_lines_run_down_the_rows_of_frames(self):
        frame = pd.DataFrame(
            {
                "warmth": [20.0, np.nan, 22.0, 23.0],
                "pressure": [1000.0, 1001.0, np.nan, 1003.0],
                "n": [1, 2, 3, 4],
            }
        )
        (filled,) = LinearImputer().fit_transform([frame])
        assert filled["warmth"].tolist() == [20, 21, 22, 23]
        assert filled["pressure"].tolist() == [1000, 1001, 1002, 1003]
        assert filled.dtypes.tolist() == frame.dtypes.tolist()
        timed = frame.set_index(pd.Index([0.0, 3.0, 4.0, 5.0], name="hour"))
        (filled,) = LinearImputer().fit_transform([timed])
        assert filled["warmth"].tolist() == [20, 21.5, 22, 23]
        assert filled.index.name == "hour"
        assert filled.index.tolist() == [0, 3, 4, 5]

    def test_a_straight_line_has_no_error_inside(self):
        X = np.arange(10.0)[None, None]
        errors = LinearImputer().fit(X).errors_
        np.testing.assert_allclose(errors[[0, 500, 1000], 0], [-1, 0, 1])
