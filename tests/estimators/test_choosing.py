"""Which model suits some data."""

import numpy as np
import pytest

from estimator_contract import problem
from seq2tens.estimators import (
    Comparison,
    DeepLS2TClassifier,
    RandomLS2TClassifier,
    RandomLS2TRegressor,
    Trial,
    choosing,
    compare,
)


def random_model(**changes):
    return RandomLS2TClassifier(**{"n_blocks": 2, "random_state": 0, **changes})


def network(epochs=2):
    return DeepLS2TClassifier(epochs=epochs, width=3, depth=1, random_state=0, device="cpu")


def test_scores_are_those_of_a_cross_validation():
    X, y = problem()
    called = []
    found = compare({"random": random_model(), "network": network()}, X, y, callback=called.append)
    assert called == list(found.trials)
    assert found.measure == "accuracy"
    parts = choosing.split(y, 3, True, 0)
    for name, make in (("random", random_model), ("network", network)):
        expected = [
            make().fit([X[i] for i in train], y[train]).score([X[i] for i in test], y[test])
            for train, test in parts
        ]
        trial = next(trial for trial in found.trials if trial.name == name)
        assert trial.scores == tuple(expected)
        assert trial.seconds > 0
        assert trial.skipped is None
    assert sorted(np.concatenate([test for _, test in parts]).tolist()) == list(range(len(y)))


def test_a_network_that_takes_too_long_is_left_out():
    X, y = problem()
    found = compare({"random": random_model(), "network": network(epochs=10**6)}, X, y, seconds=60)
    first, second = found.trials
    assert len(first.scores) == 3
    assert second.scores == ()
    assert second.skipped.startswith("needs about ")
    assert found.choice is first


def test_the_first_model_is_run_whatever_the_budget():
    X, y = problem()
    found = compare({"a": random_model(), "b": random_model(order=1)}, X, y, seconds=1e-9)
    assert len(found.trials[0].scores) == 3
    assert found.trials[1].skipped == "no time was left"


def test_numbers():
    X, _ = problem()
    slopes = np.array([x.mean() for x in X])
    found = compare({"random": RandomLS2TRegressor(n_blocks=2, random_state=0)}, X, slopes)
    assert found.measure == "R²"
    assert len(found.choice.scores) == 3


def test_the_fastest_of_those_that_are_as_good():
    slow = Trial("slow", (0.90, 0.92, 0.94), 10.0)
    quick, poor = Trial("quick", (0.91, 0.91, 0.91), 1.0), Trial("poor", (0.5, 0.5, 0.5), 0.1)
    absent = Trial("absent", skipped="no time was left")
    comparison = Comparison("accuracy", (poor, slow, quick, absent))
    assert [trial.name for trial in comparison.tried] == ["slow", "quick", "poor"]
    assert slow.mean - slow.standard_error <= quick.mean
    assert comparison.choice is quick
    assert Comparison("accuracy", (poor, slow)).choice is slow


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"folds": 1}, "`folds` must be at least 2, got 1"),
        ({"folds": 13}, "`folds` must be at most the 12 sequences of the rarest class .*down.*, got 13"),
        ({"seconds": 0}, "`seconds` must be above 0, got 0"),
        ({"models": {}}, "`models` must hold at least one model, got none"),
    ],
)
def test_refusals(changes, message):
    X, y = problem()
    with pytest.raises(ValueError, match=message):
        compare(**{"models": {"random": random_model()}, "X": X, "y": y, **changes})
