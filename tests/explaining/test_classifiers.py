"""Fitted classifiers: sequences as they were measured, and which variable a channel belongs to."""

import numpy as np
import pytest
import torch

from seq2tens.data import Preparation, Sequences
from seq2tens.estimators import DeepLS2TClassifier, FCNLS2TClassifier, RandomLS2TClassifier
from seq2tens.explaining import explain

NAMES = ["heart rate", "lactate", "age", "height"]


def stays(n=30, seed=0):
    """Two channels with gaps, irregular times and two static features; one stay has one step."""
    rng = np.random.default_rng(seed)
    lengths = [1, *rng.integers(2, 15, size=n - 1)]
    values = [np.where(rng.random((k, 2)) < 0.4, np.nan, rng.normal(size=(k, 2))) for k in lengths]
    times = [np.cumsum(rng.exponential(size=k)) for k in lengths]
    return Sequences.from_list(values, times, rng.normal(50, 10, size=(n, 2))), np.arange(n) % 2


@pytest.fixture(scope="module", params=[FCNLS2TClassifier, DeepLS2TClassifier])
def model(request):
    sizes = {"width": 4, "depth": 2, **({"fcn_width": 4} if request.param is FCNLS2TClassifier else {})}
    options = {"epochs": 3, "scaling": "channel", "since_observed": True, "random_state": 0}
    return request.param(**sizes, **options).fit(*stays())


@pytest.mark.parametrize("row", [0, 3, 7])
def test_the_output_is_that_of_a_prediction_among_others(model, row):
    sequences, _ = stays()
    found = explain(model, sequences[row], names=NAMES)
    chances = model.predict_proba(sequences)[row]  # in one batch with longer stays
    assert found.output == pytest.approx(np.log(chances[1] / chances[0]), abs=1e-4)
    assert found.target == "1"
    assert found.names == ("heart rate", "lactate", "time", "age", "height")
    difference = found.output - found.baseline_output
    assert found.variables.sum() == pytest.approx(difference, rel=1e-10)
    assert found.singles.sum() + found.pairs.sum() == pytest.approx(difference, rel=1e-10)


def changed(sequences, **fields):
    own = {name: getattr(sequences, name) for name in ("values", "offsets", "times", "static")}
    return Sequences(**own | fields)


def moved(explanation):
    return np.flatnonzero(np.abs(explanation.variables).sum(axis=0)).tolist()


def test_all_that_comes_of_a_channel_is_one_variable(model):
    x = stays()[0][5]
    for channel in (0, 1):
        values = x.values.copy()
        values[1:, channel] = np.where(np.isnan(values[1:, channel]), 1.0, np.nan)
        assert moved(explain(model, x, baseline=changed(x, values=values))) == [channel]


def test_static_features_and_time_are_variables(model):
    x = stays()[0][5]
    for feature in (0, 1):
        static = x.static.copy()
        static[0, feature] += 10
        assert moved(explain(model, x, baseline=changed(x, static=static))) == [3 + feature]
    later = explain(model, x, baseline=changed(x, times=2 * x.times))
    assert moved(later) == [0, 1, 2]  # time since the last observation has changed too


def test_values_are_those_measured_last(model):
    x = stays()[0][5]
    found = explain(model, x)
    seen = ~np.isnan(x.values)
    np.testing.assert_array_equal(found.measured[:, :2], seen)
    assert found.measured[:, 2:].all()
    np.testing.assert_array_equal(found.values[:, :2][seen], x.values[seen])
    last = np.maximum.accumulate(np.where(seen, np.arange(len(seen))[:, None], -1), axis=0)
    assert np.isnan(found.values[:, :2][last < 0]).all()
    np.testing.assert_array_equal(found.values[:, 2], x.times)
    np.testing.assert_array_equal(found.times, x.times)
    np.testing.assert_array_equal(found.values[:, 3:], np.repeat(x.static, len(x.values), axis=0))


def test_names_by_default(model):
    assert explain(model, stays()[0][5]).names == ("channel 0", "channel 1", "time", "static 0", "static 1")
    some = explain(model, stays()[0][5], names=NAMES[:2])
    assert some.names == ("heart rate", "lactate", "time", "static 0", "static 1")


def test_a_network_and_its_preparation_are_as_good_as_a_classifier(model):
    x = stays()[0][5]
    found = explain(model.network_, x, preparation=model.preparation_)
    np.testing.assert_array_equal(found.variables, explain(model, x).variables)


def test_without_standardisation_the_baseline_is_the_mean():
    rng = np.random.default_rng(0)
    X, y = rng.normal(100, size=(20, 2, 9)), np.arange(20) % 2
    model = DeepLS2TClassifier(width=4, depth=1, epochs=1, scaling=None, random_state=0).fit(X, y)
    mean = np.repeat(X.mean(axis=(0, 2))[None, :, None], 9, axis=2)
    found = explain(model, X[:1])
    assert found.baseline_output == pytest.approx(explain(model, X[:1], baseline=mean).baseline_output)
    np.testing.assert_array_equal(found.times, np.arange(9))


def test_labels_are_classes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(18, 1, 8)), np.array(["a", "b", "c"])[np.arange(18) % 3]
    model = DeepLS2TClassifier(width=4, depth=1, epochs=1, random_state=0).fit(X, y)
    assert explain(model, X[4:5]).target == model.predict(X[4:5])[0]
    assert explain(model, [X[4]], target="c").target == "c"


def test_refusals(model):
    sequences, _ = stays()
    x = sequences[5]
    with pytest.raises(ValueError, match=r"`x` must hold one sequence, got 2"):
        explain(model, sequences[:2])
    with pytest.raises(ValueError, match=r"`target` must be one of the classes \[0, 1\], got 2"):
        explain(model, x, target=2)
    with pytest.raises(ValueError, match=r"`x` must have 2 channels as in `fit`, got 3"):
        explain(model, Sequences(np.zeros((4, 3)), np.array([0, 4])))
    with pytest.raises(ValueError, match=r"`x.static` must be given as in `fit` \(some\), got none"):
        explain(model, changed(x, static=None))
    with pytest.raises(ValueError, match=rf"`baseline` must have the {len(x.values)} steps of `x`, got 1"):
        explain(model, x, baseline=sequences[0])
    with pytest.raises(ValueError, match=r"`names` must name the 2 or 4 variables .*, got 3"):
        explain(model, x, names=NAMES[:3])
    with pytest.raises(ValueError, match="`model` must be fitted, got a new DeepLS2TClassifier"):
        explain(DeepLS2TClassifier(), x)
    with pytest.raises(ValueError, match="`preparation` must be None for a classifier"):
        explain(model, x, preparation=Preparation())
    with pytest.raises(TypeError, match=r"`model` must be a network classifier .*, got RandomLS2TClassifier"):
        explain(RandomLS2TClassifier(), x)


def test_a_network_in_half_precision_is_explained_in_double(model):
    x = stays()[0][5]
    whole = explain(model, x)
    try:
        model.network_.to(torch.bfloat16)
        half = explain(model, x)
    finally:
        model.network_.float()
    assert half.output == pytest.approx(whole.output, abs=0.2)
    assert half.variables.sum() == pytest.approx(half.output - half.baseline_output, rel=1e-10)
