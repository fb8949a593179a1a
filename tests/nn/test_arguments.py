"""Arrays, lists, empty and meta tensors for layers and networks: the obvious meaning, or a clear sentence."""

from collections import Counter

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from seq2tens import _checks
from seq2tens.nn import (
    FCN,
    FCNLS2T,
    LS2T,
    BiLS2T,
    DeepLS2T,
    Difference,
    Lags,
    LevelNorm,
    LS2TBlock,
    MaskedBatchNorm,
    MaskedConv,
    ResNet,
    TimeEmbedding,
)

MODULES = {
    "ls2t": lambda: LS2T(3, 16, 2, normalize=True),
    "bi-ls2t": lambda: BiLS2T(3, 4, 2),
    "block": lambda: LS2TBlock(3, 4, 2),
    "block-levels": lambda: LS2TBlock(3, 4, 2, difference=False, norm=False),
    "deep": lambda: DeepLS2T(3, 16, 2),
    "deep-sequences": lambda: DeepLS2T(3, 4, 2, return_sequences=True),
    "fcn": lambda: FCN(3, 4, time_embedding=True),
    "resnet": lambda: ResNet(3, (4,)),
    "fcn-ls2t": lambda: FCNLS2T(3, 4, 16, 2),
    "difference": Difference,
    "lags": lambda: Lags(2),
    "time": TimeEmbedding,
}
NORMALISED = ["block", "deep", "deep-sequences", "fcn", "resnet", "fcn-ls2t"]
every_module = pytest.mark.parametrize("name", MODULES)
both_modes = pytest.mark.parametrize("training", [True, False])


def build(name, training=True):
    torch.manual_seed(0)
    return MODULES[name]().train(training)


def read_only(values):
    array = np.array(values)
    array.flags.writeable = False
    return array


@every_module
@both_modes
@pytest.mark.parametrize(
    "make",
    [list, tuple, np.array, lambda n: np.array(n, np.int32), lambda n: np.array(n, np.uint16), read_only],
    ids=["list", "tuple", "array", "int32", "uint16", "read-only"],
)
def test_lengths_may_be_a_list_or_an_array(name, training, make):
    x, lengths = torch.randn(3, 5, 3), [5, 0, 3]
    expected = build(name, training)(x, lengths=torch.tensor(lengths))
    assert_close(build(name, training)(x, lengths=make(lengths)), expected, rtol=0, atol=0)


@every_module
def test_a_mask_may_be_an_array(name):
    x, mask = torch.randn(3, 5, 3), np.arange(5) < np.array([[5], [0], [3]])
    expected = build(name)(x, torch.from_numpy(mask))
    assert_close(build(name)(x, mask), expected, rtol=0, atol=0)


@every_module
@pytest.mark.parametrize(
    ("lengths", "error", "rule"),
    [
        ([5, 6, 3], ValueError, r"`lengths` must lie in 0\.\.5 .* got 6 at index 1"),
        ([5, 3], ValueError, r"`lengths` must have shape \(batch,\) = \(3,\), got \(2,\)"),
        (5, ValueError, r"`lengths` must have shape \(batch,\) = \(3,\), got \(\)"),
        (np.array([5.0, 2.0, 3.0]), TypeError, "`lengths` must be integers, got torch.float64"),
        ([[5], [1, 2], [3]], TypeError, r"`lengths` must be a tensor, an array or a list, got \[\[5\]"),
        ("5", TypeError, "`lengths` must be a tensor, an array or a list, got '5'"),
    ],
)
def test_wrong_lengths_are_told(name, lengths, error, rule):
    with pytest.raises(error, match=rule):
        build(name)(torch.randn(3, 5, 3), lengths=lengths)


PARTS = {
    "conv": lambda: MaskedConv(3, 4, 3),
    "norm": lambda: MaskedBatchNorm(3),
    "level-norm": lambda: LevelNorm(3),
}


@pytest.mark.parametrize("make", [*MODULES.values(), *PARTS.values()], ids=[*MODULES, *PARTS])
@both_modes
def test_an_array_in_place_of_a_tensor_is_told(make, training):
    with pytest.raises(TypeError, match=r"`[xy]` must be a torch\.Tensor, got ndarray"):
        make().train(training)(np.zeros((2, 5, 3), dtype=np.float32))


@every_module
@both_modes
@pytest.mark.parametrize("options", [{}, {"lengths": torch.tensor([0, 0])}])
def test_an_empty_time_axis_is_told(name, training, options):
    with pytest.raises(ValueError, match=r"`x` must have at least one time step, .* \(2, 0, 3\)"):
        build(name, training)(torch.randn(2, 0, 3), **options)


@every_module
@both_modes
@pytest.mark.parametrize("given", ["nothing", "lengths", "mask"])
def test_the_meta_device_gives_shapes(name, training, given):
    x, lengths = torch.randn(3, 5, 3), torch.tensor([5, 0, 3])
    options = {"lengths": lengths} if given == "lengths" else {}
    options |= {"mask": torch.arange(5) < lengths[:, None]} if given == "mask" else {}
    expected = build(name, training)(x, **options)
    with torch.device("meta"):
        network = build(name, training)
    y = network(x.to("meta"), **{key: value.to("meta") for key, value in options.items()})
    assert (y.device.type, y.shape, y.dtype) == ("meta", expected.shape, expected.dtype)
    if y.requires_grad:
        y.sum().backward()
        assert all(parameter.grad.is_meta for parameter in network.parameters())


@pytest.mark.parametrize("name", NORMALISED)
@pytest.mark.parametrize("momentum", [None, 1.5])
def test_a_momentum_that_is_no_share_is_told(name, momentum):
    x, network = torch.randn(3, 5, 3), build(name)
    norms = [part for part in network.modules() if isinstance(part, MaskedBatchNorm)]
    for norm in norms:
        before, norm.momentum = norm.momentum, momentum
        with pytest.raises(ValueError, match=rf"`momentum` must be a number in \[0, 1\], got {momentum}"):
            network(x)
        norm.momentum = before
    norms[0].momentum = momentum
    network.eval()(x)  # where nothing follows


def test_momentum_is_checked_when_a_normalisation_is_made():
    for make in (MaskedBatchNorm, LevelNorm):
        with pytest.raises(ValueError, match=r"`momentum` must be a number in \[0, 1\], got None"):
            make(3, momentum=None)


@pytest.mark.parametrize("build", [lambda: LS2T(3, 4, 2), lambda: FCN(3, 4)], ids=["LS2T", "FCN"])
def test_sequences_and_lengths_are_checked_once(build, monkeypatch):
    calls = Counter()

    def counted(check):
        def counting(*arguments):
            calls[check.__name__] += 1
            return check(*arguments)

        return counting

    for check in (_checks.sequences, _checks.step_mask):
        monkeypatch.setattr(_checks, check.__name__, counted(check))
    build()(torch.randn(2, 5, 3), lengths=[5, 2])
    assert calls == {"sequences": 1, "step_mask": 1}
