"""Scores in many orders at once are those of the imputation experiment."""

import numpy as np
import pytest
from benchmarks import stays_order
from benchmarks.many_orders import areas
from scipy import stats

from experiments.imputation.few_gaps import write_gaps
from seq2tens.experiments.imputation.data import load
from seq2tens.experiments.imputation.scores import auroc, aurocs, by_mean


def test_areas_are_those_of_liblinear():
    rng = np.random.default_rng(0)
    features = rng.standard_t(2, size=(120, 90)).astype(np.float32)  # rare large values, as in the stays
    labels = (features[:, 0] + 2 * rng.standard_normal(120) > 1.5).astype(int)
    orders = np.array([rng.permutation(120) for _ in range(6)])
    expected = [auroc(features[rows], labels[rows]) for rows in orders]
    assert np.std(expected) > 0.01
    assert areas(features, labels, orders) == pytest.approx(expected, abs=1e-9)


def test_orders_are_those_of_the_experiment(tmp_path, monkeypatch):
    monkeypatch.setattr(stays_order, "TOGETHER", 2)
    stays = load("physionet", str(write_gaps(tmp_path))).train
    expected = aurocs(stays_order.imputed(by_mean, stays), stays.labels, 5)
    assert stays_order.in_orders("mean", 0, stays, 5) == pytest.approx(expected, abs=1e-9)
    backwards = stays_order.reversed_in_time(stays)
    assert np.array_equal(backwards.with_nan[:, ::-1], stays.with_nan, equal_nan=True)
    # means over time do not depend on its direction, and neither does the classifier
    assert stays_order.in_orders("mean", 0, backwards, 5) == pytest.approx(expected, abs=1e-9)


def test_probability_for_one_model_is_that_of_a_t_test():
    values = np.random.default_rng(1).normal(0.7, 0.014, size=(1, 30))
    away = (0.73 - values.mean()) / (values.std(ddof=1) * np.sqrt(1 + 1 / 30))
    expected = 2 * stats.t.sf(abs(away), 29)
    assert stays_order.probability(values, np.array([0.73])) == pytest.approx(expected, rel=1e-9)


def test_the_report_has_a_line_for_each_model():
    rng = np.random.default_rng(2)
    found = {"mean": rng.normal(0.7, 0.01, 30), "forward": rng.normal(0.7, 0.01, 30)}
    text = stays_order.report(found)
    assert f"{found['mean'].mean():.4f}" in text
    assert "| Forward imputation |" in text
    assert "p = " in text
