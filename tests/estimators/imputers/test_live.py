"""Steps that are filled as they come are filled as the causal half would fill the whole prefix."""

import numpy as np
import pytest
import torch

from estimators.imputers.test_vae import waves
from seq2tens.data import Sequences
from seq2tens.estimators import LS2TImputer
from seq2tens.models.imputation import LEVELS, GapSource

FIXED = {"width": 8, "functionals": 4, "epochs": 3, "random_state": 0, "device": "cpu"}
STEPS = 24


@pytest.fixture(scope="module")
def model():
    """A model in float64 of sequences with irregular times and static features."""
    rng = np.random.default_rng(0)
    X = waves(n=20, steps=STEPS).transpose(0, 2, 1)
    X[rng.random(X.shape) < 0.3] = np.nan
    times = np.cumsum(rng.random((20, STEPS)), axis=1)
    data = Sequences.from_list(list(X), list(times), rng.normal(size=(20, 1)))
    fitted = LS2TImputer(**FIXED).fit(data)
    fitted.network_.double()
    return fitted, data


def causal(model, X):
    """What the causal half gives for the first sequence, from its definition."""
    scaled = (X.values - model.scaler_.mean_) / model.scaler_.scale_
    inputs = Sequences(scaled, X.offsets, X.times / model.step_, model._static_input(X))
    batch = GapSource(inputs, np.isnan(X.values), torch.float64).batch(torch.arange(1))
    entries = batch.hidden.nonzero(as_tuple=True)
    with torch.no_grad():
        told = model.network_(batch.masked(batch.hidden), entries).past[:, LEVELS.index(0.5)].numpy()
    filled = X.values.copy()
    filled[np.isnan(filled)] = told * model.scaler_.scale_[entries[2]] + model.scaler_.mean_[entries[2]]
    return filled


@pytest.mark.parametrize("cuts", [[], [1], [5, 6, 20], list(range(1, STEPS))])
def test_pieces_are_filled_as_the_whole(model, cuts):
    imputer, data = model
    for row in (0, 7):
        X = data[row : row + 1]
        stream = imputer.stream(static=X.static[0])
        parts = zip(np.split(X.values, cuts), np.split(X.times, cuts), strict=True)
        filled = np.concatenate([stream.push(rows, times) for rows, times in parts])
        np.testing.assert_allclose(filled, causal(imputer, X), rtol=0, atol=1e-10)
        seen = ~np.isnan(X.values)
        np.testing.assert_array_equal(filled[seen], X.values[seen])
        assert stream.steps == STEPS


def test_steps_without_times_count_one(model):
    imputer, data = model
    X = data[0:1]
    counted = Sequences(X.values, X.offsets, np.arange(float(STEPS)), X.static)
    stream = imputer.stream(static=X.static[0])
    filled = np.concatenate([stream.push(X.values[:9]), stream.push(X.values[9:])])
    np.testing.assert_allclose(filled, causal(imputer, counted), rtol=0, atol=1e-10)


def test_a_stream_goes_on_from_its_file(model, tmp_path):
    imputer, data = model
    X = data[3:4]
    first, second = (imputer.stream(static=X.static[0]) for _ in range(2))
    expected = first.push(X.values, X.times)[10:]
    second.push(X.values[:10], X.times[:10])
    second.save(tmp_path / "stream", {"note": 1})
    third = imputer.stream(static=X.static[0])
    assert third.load(tmp_path / "stream") == {"note": 1}
    np.testing.assert_allclose(third.push(X.values[10:], X.times[10:]), expected, rtol=0, atol=1e-10)
    third.reset()
    assert third.steps == 0
    np.testing.assert_allclose(third.push(X.values, X.times)[10:], expected, rtol=0, atol=1e-10)
    with pytest.raises(ValueError, match="`state` must come from a stream with the same static features"):
        imputer.stream(static=[9.0]).restore(second.state())
    with pytest.raises(ValueError, match="`state` must be a dict with the keys network, origin, past"):
        imputer.stream().restore({})


def test_an_error_leaves_the_stream_as_it_was(model):
    imputer, data = model
    X = data[0:1]
    stream, other = imputer.stream(), imputer.stream()
    for s in (stream, other):
        s.push(X.values[:5], X.times[:5])
    wrong = [
        (X.values[:, :1], X.times, r"`rows` must have shape \(steps, 2\) with the channels of `fit`"),
        (np.full((1, 2), np.inf), [99.0], "`rows` must be finite, or NaN where missing, got infinity"),
        (X.values[:1], [-1.0], "`times` must not decrease, got -1.0 after"),
        (X.values[:1], None, "`times` must be given for all steps or for none, got none after some"),
        (X.values[:2], [99.0], r"`times` must have shape \(steps,\) = \(2,\), got \(1,\)"),
        (np.full((1, 2), 1e300), [99.0], "`rows` must have values of the size of those in training"),
    ]
    for rows, times, message in wrong:
        with pytest.raises(ValueError, match=message):
            stream.push(rows, times)
    assert stream.push(np.empty((0, 2))).shape == (0, 2)
    rest = X.values[5:], X.times[5:]
    np.testing.assert_array_equal(stream.push(*rest), other.push(*rest))


def test_constant_and_unknown_channels():
    X = waves(n=12)
    X[:, 0], X[:, 1] = 7.0, np.nan
    imputer = LS2TImputer(**FIXED).fit(X)
    filled = imputer.stream().push(np.array([[np.nan, np.nan], [7.0, 3.0]]))
    assert filled.tolist() == [[7, 0], [7, 3]]
    with pytest.raises(
        ValueError, match="`static` must be None for a model without static features, got some"
    ):
        imputer.stream(static=[1.0])
