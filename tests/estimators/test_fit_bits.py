"""The same fit has the same bits on any number of threads, and with kernels of any vector width."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from seq2tens.estimators import DeepLS2TClassifier, FCNClassifier, FCNLS2TClassifier, ResNetClassifier

CLASSIFIERS = [FCNClassifier, FCNLS2TClassifier, DeepLS2TClassifier, ResNetClassifier]


def waves():
    rng = np.random.default_rng(0)
    labels = np.arange(20) % 3
    return [rng.normal(size=(4, rng.integers(12, 40))) + label for label in labels], labels


def fitted_weights(cls):
    X, y = waves()
    network = cls(epochs=2, random_state=0, progress=False).fit(X, y).network_
    return {name: value.clone() for name, value in network.state_dict().items()}


@pytest.mark.parametrize("cls", [*CLASSIFIERS[:3], pytest.param(CLASSIFIERS[3], marks=pytest.mark.slow)])
def test_any_number_of_threads(cls):
    expected = fitted_weights(cls)
    for threads in (2, 3):
        torch.set_num_threads(threads)
        weights = fitted_weights(cls)
        assert [name for name in expected if not torch.equal(weights[name], expected[name])] == []
    torch.set_num_threads(1)


FIT = """
import hashlib
from test_fit_bits import CLASSIFIERS, fitted_weights
from seq2tens.ops import native
digest = hashlib.sha256()
for cls in CLASSIFIERS:
    for value in fitted_weights(cls).values():
        digest.update(value.numpy().tobytes())
print(native.LOADED.instruction_set, digest.hexdigest())
"""


@pytest.mark.slow
def test_any_vector_width():
    """AVX2 and AVX-512 have fused multiply-adds; the oldest processors have none, and other bits."""
    digests = {}
    for name in ("x86-64-v3", "x86-64-v4"):
        environment = {**os.environ, "SEQ2TENS_ISA": name, "OMP_NUM_THREADS": "1"}
        process = subprocess.run(
            [sys.executable, "-c", FIT],
            cwd=Path(__file__).parent,
            env=environment,
            capture_output=True,
            text=True,
        )
        if "has no instruction set" in process.stderr:
            pytest.skip(f"this processor does not have {name}")
        assert process.returncode == 0, process.stderr
        chosen, digests[name] = process.stdout.split()
        assert chosen == name
    assert len(set(digests.values())) == 1
