"""Networks call their modules one by one, in training as in evaluation: hooks see every call."""

import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from torch import nn

import seq2tens
from seq2tens.nn import FCN, FCNLS2T, LS2T, DeepLS2T, MaskedConv, ResNet
from seq2tens.ops import native

NETWORKS = {
    "deep": lambda: DeepLS2T(3, 16, 2),
    "fcn": lambda: FCN(3, 4),
    "resnet": lambda: ResNet(3, (4,)),
    "fcn-ls2t": lambda: FCNLS2T(3, 4, 16, 2),
}
every_network = pytest.mark.parametrize("name", NETWORKS)


@every_network
@pytest.mark.parametrize("training", [False, True])
def test_every_module_is_called_once(name, training):
    network, calls = NETWORKS[name]().train(training), Counter()
    parts = {path: m for path, m in network.named_modules() if not isinstance(m, nn.ModuleList)}
    for path, module in parts.items():
        module.register_forward_hook(lambda *_, path=path: calls.update([path]))
    network(torch.randn(4, 6, 3), lengths=torch.tensor([6, 4, 6, 1]))
    assert calls == Counter(parts.keys())


@every_network
def test_what_a_hook_returns_is_taken(name):
    """Of every module inside: its output is replaced by zeros, which changes the network's."""
    x = torch.randn(4, 6, 3, dtype=torch.float64)
    torch.manual_seed(0)
    network = NETWORKS[name]().double()
    with torch.no_grad():
        expected = network(x)
    for path, module in network.named_modules():
        if path and not isinstance(module, nn.ModuleList):
            handle = module.register_forward_hook(lambda *given: torch.zeros_like(given[-1]))
            with torch.no_grad():
                assert not torch.equal(network(x), expected), path
            handle.remove()


def test_the_bias_before_a_normalisation_does_not_move():
    """Its gradient would be a rounding error; with frozen statistics it is a real one."""
    network, x = FCN(3, 4), torch.randn(4, 6, 3)
    network(x).square().sum().backward()
    convolutions = [m for m in network.modules() if isinstance(m, MaskedConv)]
    assert not any(conv.bias.grad.any() for conv in convolutions)
    for block in network.convolutions.blocks:
        block.norm.eval()
    network(x).square().sum().backward()
    assert all(conv.bias.grad.any() for conv in convolutions)


@pytest.mark.skipif(native.unavailable() is not None, reason="no kernels")
@pytest.mark.parametrize("training", [False, True])
def test_a_layer_is_a_few_calls_from_its_kernel(training):
    """At most eight, from `LS2T.forward` to `native.run_kernel`, which calls the library."""
    layer, package, walk = LS2T(3, 4, 2), str(Path(seq2tens.__file__).parent), []

    def record(frame, event, _):
        if event == "call" and frame.f_code is native.run_kernel.__code__:
            while frame is not None:
                if frame.f_code.co_filename.startswith(package):
                    walk.append(frame.f_code.co_name)
                frame = frame.f_back

    x = torch.randn(2, 9, 3)
    previous = sys.getprofile()
    with torch.set_grad_enabled(training):
        sys.setprofile(record)
        try:
            layer(x)
        finally:
            sys.setprofile(previous)
    assert walk[0] == "run_kernel"
    assert walk[-1] == "forward"
    assert len(walk) - 1 <= 8
