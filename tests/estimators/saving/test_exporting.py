"""Fitted estimators as ONNX files: onnxruntime predicts what they predict."""

import json

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from estimator_contract import problem, rich, with_gaps
from seq2tens.data import Sequences, from_aeon, load_dataset
from seq2tens.estimators import MODELS, RandomLS2TClassifier, RandomLS2TRegressor, load

SMALL = {
    "fcn-ls2t": {"width": 4, "fcn_width": 4, "epochs": 2, "since_observed": True},
    "ls2t": {"width": 4, "epochs": 2},
    "fcn": {"width": 4, "epochs": 2},
    "resnet": {"widths": (4, 4), "epochs": 2},
    "random-ls2t": {"n_blocks": 5},
}


def noise(n=30, seed=0):
    """Classes that overlap, so that probabilities are neither all alike nor 0 and 1."""
    rng = np.random.default_rng(seed)
    codes, lengths = rng.integers(3, size=n), rng.integers(3, 12, size=n)
    X = [rng.normal(5 + code / 2, 2, size=(2, length)) for code, length in zip(codes, lengths, strict=True)]
    return from_aeon(with_gaps(X)), np.array(["left", "right", "up"])[codes]


def padded(sequences: Sequences, extra=2):
    """The inputs of the file: NaN at padding, more of it than needed."""
    shape = (len(sequences), sequences.lengths.max() + extra)
    inside = np.arange(shape[1]) < sequences.lengths[:, None]
    values = np.full((*shape, sequences.n_channels), np.nan)
    values[inside] = sequences.values
    inputs = {"values": values, "lengths": sequences.lengths}
    if sequences.times is not None:
        inputs["times"] = np.zeros(shape)
        inputs["times"][inside] = sequences.times
    if sequences.static is not None:
        inputs["static"] = sequences.static
    return inputs


def run(path, sequences):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, padded(sequences))[0], session


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("scaling", ["channel", "sequence", None])
def test_probabilities(name, scaling, tmp_path):
    X, y = noise()
    model = MODELS[name](random_state=0, scaling=scaling, **SMALL[name]).fit(X, y)
    model.to_onnx(tmp_path / "model.onnx")
    expected = model.predict_proba(X)
    actual, session = run(tmp_path / "model.onnx", X)
    assert expected.std(axis=0).min() > 0.001  # so that something is compared
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5)
    alone, _ = run(tmp_path / "model.onnx", X[7])
    np.testing.assert_allclose(alone, expected[7:8], rtol=0, atol=1e-5)
    assert json.loads(session.get_modelmeta().custom_metadata_map["classes"]) == ["left", "right", "up"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fcn-ls2t", "random-ls2t"])
def test_times_and_static_features(name, tmp_path):
    X, y = rich()
    y = np.random.default_rng(0).permutation(y)
    model = MODELS[name](random_state=0, **SMALL[name]).fit(X, y)
    model.to_onnx(tmp_path / "model.onnx")
    actual, session = run(tmp_path / "model.onnx", X)
    np.testing.assert_allclose(actual, model.predict_proba(X), rtol=0, atol=1e-5)
    assert [node.name for node in session.get_inputs()] == ["values", "lengths", "times", "static"]


@pytest.mark.slow
def test_values(tmp_path):
    X, _ = noise()
    y = np.random.default_rng(1).normal(100, 20, size=len(X))
    model = RandomLS2TRegressor(n_blocks=5, random_state=0).fit(X, y)
    model.to_onnx(tmp_path / "model.onnx")
    actual, session = run(tmp_path / "model.onnx", X)
    np.testing.assert_allclose(actual, model.predict(X), rtol=1e-5)
    assert [node.name for node in session.get_outputs()] == ["prediction"]
    assert "classes" not in session.get_modelmeta().custom_metadata_map


@pytest.mark.slow
def test_real_data(tmp_path):
    train, test = load_dataset("JapaneseVowels")
    model = RandomLS2TClassifier(random_state=0).fit(train.sequences, train.labels)
    model.to_onnx(tmp_path / "model.onnx")
    actual, _ = run(tmp_path / "model.onnx", test.sequences)
    np.testing.assert_allclose(actual, model.predict_proba(test.sequences), rtol=0, atol=1e-5)


@pytest.mark.slow
def test_channels_have_their_names_and_a_loaded_model_is_exported_as_well(tmp_path):
    X, y = problem()
    frames = [pd.DataFrame(x.T, columns=["speed", "height"]) for x in X]
    RandomLS2TClassifier(n_blocks=2, order=1, random_state=0).fit(frames, y).save(tmp_path / "model")
    model = load(tmp_path / "model")
    model.to_onnx(tmp_path / "model.onnx")
    actual, session = run(tmp_path / "model.onnx", from_aeon(X))
    np.testing.assert_allclose(actual, model.predict_proba(frames), rtol=0, atol=1e-5)
    assert json.loads(session.get_modelmeta().custom_metadata_map["channels"]) == ["speed", "height"]


def test_an_estimator_that_is_not_fitted(tmp_path):
    with pytest.raises(NotFittedError):
        RandomLS2TClassifier().to_onnx(tmp_path / "model.onnx")
