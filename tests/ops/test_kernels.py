"""Which kernels run for what users call; without them results would be the same, only slower."""

import numpy as np
import pytest
import torch

from seq2tens import functional as F
from seq2tens.algebra import signature
from seq2tens.estimators import RandomLS2TFeatures
from seq2tens.nn import FCN, FCNLS2T, LS2T, BiLS2T
from seq2tens.ops import native

pytestmark = pytest.mark.skipif(native.unavailable() is not None, reason="the library is not built")
CONVOLUTION = {"convolution_forward", "convolution_backward"}
NORMALIZATION = {"batch_norm_forward", "batch_norm_backward"}
RECURSION = {"ls2t_forward", "ls2t_backward"}
DIFFERENCE = {"difference_steps"}


@pytest.fixture
def kernels(monkeypatch):
    """The names of the kernels that have run; they run as always."""
    names, run = set(), native.run_kernel

    def recorded(operation, call):
        names.add(operation)
        run(operation, call)

    monkeypatch.setattr(native, "run_kernel", recorded)
    return names


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda: LS2T(3, 4, 2), RECURSION),
        (lambda: BiLS2T(3, 4, 2), RECURSION),
        (lambda: FCN(3, 4), CONVOLUTION | NORMALIZATION),
        (lambda: FCNLS2T(3, 4, 4), CONVOLUTION | NORMALIZATION | DIFFERENCE | RECURSION),
    ],
    ids=["LS2T", "BiLS2T", "FCN", "FCNLS2T"],
)
@pytest.mark.parametrize("masked", [False, True])
def test_a_training_step(build, expected, masked, kernels):
    lengths = torch.tensor([20, 7]) if masked else None
    build()(torch.randn(2, 20, 3), lengths=lengths).square().mean().backward()
    assert kernels == expected


def test_a_stream_lays_out_its_weights_once(kernels):
    stream, x = FCNLS2T(3, 4, 4, time_embedding=False).eval().stream(), torch.randn(2, 20, 3)
    with torch.no_grad():
        stream.push(x[:, :10])
        assert {"convolution_pack", "convolution_forward", "ls2t_forward"} <= kernels
        kernels.clear()
        stream.push(x[:, 10:11])
    assert kernels == {"convolution_forward", "ls2t_forward"}


def test_the_full_map(kernels):
    signature(torch.randn(2, 20, 3, requires_grad=True), 3).flatten().sum().backward()
    assert kernels == {"full_map_forward", "full_map_backward"}


def test_windows_and_intervals(kernels):
    x, weight = torch.randn(2, 400, 3), torch.randn(2, 3, 4)
    F.sliding_ls2t(x, 40, weight, order=2)
    assert kernels == {"slide_windows"}
    intervals = F.PrefixLS2T(x, weight, order=2)
    kernels.clear()
    intervals(torch.tensor([0, 5]), torch.tensor([399, 300]), torch.tensor([0, 1]))
    assert kernels == {"join_intervals"}


def test_random_features(kernels):
    X = np.random.default_rng(0).normal(size=(8, 3, 30))
    features = RandomLS2TFeatures(n_blocks=2, random_state=0).fit(X)
    kernels.clear()
    features.transform(X)
    assert kernels == {"pool_blocks"}
