"""What carried a prediction of a linear model on random features."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from estimator_contract import problem, rich
from seq2tens.estimators import RandomLS2TClassifier, RandomLS2TRegressor
from seq2tens.explaining import explain, explain_features


@pytest.fixture(scope="module")
def classifier():
    return RandomLS2TClassifier(n_blocks=4, random_state=0).fit(*problem())


def total(explanation):
    return sum(row.contribution for row in explanation.features) + explanation.rest


def test_parts_add_up_to_the_score_of_the_class(classifier):
    X, _ = problem(seed=1)
    explanation = explain_features(classifier, X[:1], names=["heat", "wind"])
    assert explanation.target == "up"
    scores = classifier._decide(classifier._as_in_fit(X[:1]))[0].tolist()
    assert explanation.output == pytest.approx(scores[1] - scores[0], rel=1e-4)
    assert explanation.output - explanation.baseline_output == pytest.approx(total(explanation))
    sizes = [abs(row.contribution) for row in explanation.features]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == 20
    assert {name for row in explanation.features for name in row.channels} <= {"heat", "wind"}
    other = explain_features(classifier, X[:1], target="down")
    assert other.output == pytest.approx(-explanation.output)


def test_all_features_leave_no_rest(classifier):
    X, _ = problem(seed=1)
    explanation = explain_features(classifier, X[:1], top=10**6)
    assert len(explanation.features) == classifier.features_.n_features_
    assert explanation.rest == pytest.approx(0, abs=1e-9)


def test_steps_are_told_by_their_times():
    sequences, y = rich()
    model = RandomLS2TClassifier(n_blocks=2, random_state=0).fit(sequences, y)
    explanation = explain_features(model, sequences[3])
    times = {time for row in explanation.features for time in row.times}
    assert times <= set(sequences[3].times.tolist())
    assert len(times) > 1


def test_a_target_of_several():
    X, _ = problem()
    y = np.array([[x.mean(), 100 + 10 * x.std()] for x in X])
    model = RandomLS2TRegressor(n_blocks=4, random_state=0).fit(X, y)
    for target in (0, 1):
        explanation = explain_features(model, X[:1], target=target)
        assert explanation.output == pytest.approx(model.predict(X[:1])[0, target], rel=1e-4)
        assert explanation.target == f"target {target}"
        assert explanation.output - explanation.baseline_output == pytest.approx(total(explanation))


def test_refusals(classifier):
    X, y = problem()
    with pytest.raises(ValueError, match=r"`target` must be one of the classes \['down', 'up'\], got 'left'"):
        explain_features(classifier, X[:1], target="left")
    with pytest.raises(ValueError, match="`x` must hold one sequence, got 2"):
        explain_features(classifier, X[:2])
    regressor = RandomLS2TRegressor(n_blocks=1, random_state=0).fit(X, np.arange(len(y)))
    with pytest.raises(ValueError, match=r"`target` must lie in 0\.\.0, got 1"):
        explain_features(regressor, X[:1], target=1)
    with pytest.raises(TypeError, match=r"got RandomLS2TClassifier \(`explain_features` is for those on"):
        explain(classifier, X[:1])


def test_a_head_of_another_library_is_refused():
    X, y = problem()
    model = RandomLS2TClassifier(n_blocks=2, random_state=0, head=LogisticRegression(max_iter=2000)).fit(X, y)
    with pytest.raises(
        ValueError, match=r"`head` must be None \(ridge regression\) for this method, got Log"
    ):
        explain_features(model, X[:1])
