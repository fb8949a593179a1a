"""Layers and networks as ONNX files, run by onnxruntime."""

import importlib.util

import numpy as np
import onnxruntime
import pytest
import torch

from exporting.test_program import EVERY, SIZES, built, example
from seq2tens import nn
from seq2tens.exporting import to_onnx


def session(path):
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize(
    "name", [name if name == "LS2T" else pytest.param(name, marks=pytest.mark.slow) for name in EVERY]
)
def test_the_same_numbers(name, tmp_path):
    module, path = built(name), tmp_path / "module.onnx"
    to_onnx(module, path, example(2, 5), outputs=["levels"], metadata={"of": name})
    file = session(path)
    assert file.get_modelmeta().custom_metadata_map == {"of": name}
    assert [node.name for node in file.get_outputs()] == ["levels"]
    shapes = {node.name: node.shape for node in file.get_inputs()}
    assert shapes == {"x": ["batch", "time", 3], "lengths": ["batch"]}
    for size in SIZES:
        inputs = example(*size)
        with torch.no_grad():
            expected = module(**inputs).numpy()
        (actual,) = file.run(None, {key: tensor.numpy() for key, tensor in inputs.items()})
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("missing", ["onnx", "onnxscript"])
def test_without_the_extra(missing, tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else find(name))
    with pytest.raises(ImportError, match=rf"needs {missing}: pip install 'seq2tens\[onnx\]'"):
        to_onnx(nn.LS2T(3, 4, 2).eval(), tmp_path / "layer.onnx", example(2, 5))
    assert not list(tmp_path.iterdir())
