"""Layers and networks as programs of torch.export, for any number of sequences and steps."""

import pytest
import torch

from seq2tens import nn
from seq2tens.exporting import export

LAYERS = {
    "LS2T": lambda: nn.LS2T(3, 4, 3),
    "LS2T at the end": lambda: nn.LS2T(3, 4, 2, weights="independent", reverse=True, return_sequences=False),
    "LS2T with lift": lambda: nn.LS2T(3, 4, 3, lift_order=2, learn_lift=True, normalize=True),
    "LS2T with decay": lambda: nn.LS2T(3, 4, 3, decay="learn"),
    "LS2T with decay, backwards": lambda: nn.LS2T(3, 4, 2, decay=0.9, lift_order=2, reverse=True),
    "BiLS2T": lambda: nn.BiLS2T(3, 4, 2),
}
NETWORKS = {
    "FCN": lambda: nn.FCN(3, 4),
    "ResNet": lambda: nn.ResNet(3, (4, 4)),
    "DeepLS2T": lambda: nn.DeepLS2T(3, 4),
    "FCNLS2T": lambda: nn.FCNLS2T(3, 4, 4),
}
EVERY = {**LAYERS, **NETWORKS}
CASES = [*LAYERS, *(pytest.param(name, marks=pytest.mark.slow) for name in NETWORKS)]
SIZES = [(1, 1), (1, 30), (5, 1), (4, 17)]


def example(batch, time, lengths=True):
    x = torch.randn(batch, time, 3, generator=torch.Generator().manual_seed(batch + time))
    return {"x": x, "lengths": 1 + torch.arange(batch) % time} if lengths else {"x": x}


def built(name):
    torch.manual_seed(0)
    module = EVERY[name]().eval()
    for buffer_name, buffer in module.named_buffers():
        if "running" in buffer_name:  # statistics as after some training
            buffer.uniform_(0.5, 2.0)
    return module


def operations(program):
    return {str(node.target) for node in program.graph.nodes if node.op == "call_function"}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("lengths", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_any_number_of_sequences_and_steps(name, lengths):
    module = built(name)
    program = export(module, example(2, 5, lengths))
    assert not any("seq2tens" in operation for operation in operations(program))
    for size in SIZES:
        inputs = example(*size, lengths)
        with torch.no_grad():
            expected, actual = module(**inputs), program.module()(**inputs)
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5 * float(expected.abs().max()))


@pytest.mark.slow
def test_masks():
    module = built("FCNLS2T")
    program = export(module, {"x": torch.zeros(2, 5, 3), "mask": torch.ones(2, 5, dtype=torch.bool)})
    x = example(4, 17)["x"]
    mask = torch.rand(4, 17, generator=torch.Generator().manual_seed(0)) < 0.7
    with torch.no_grad():
        expected = module(x, mask)
        torch.testing.assert_close(program.module()(x=x, mask=mask), expected, rtol=1e-4, atol=1e-4)


def test_with_the_operation_of_this_package_results_are_the_same_bits():
    module, inputs = built("LS2T with decay"), example(4, 17)
    program = export(module, example(2, 5), portable=False)
    assert "seq2tens.ls2t.default" in operations(program)
    with torch.no_grad():
        assert torch.equal(program.module()(**inputs), module(**inputs))


@pytest.mark.slow
def test_a_program_is_saved_and_loaded(tmp_path):
    module, inputs = built("DeepLS2T"), example(4, 17)
    torch.export.save(export(module, example(2, 5)), tmp_path / "network.pt2")
    program = torch.export.load(tmp_path / "network.pt2")
    with torch.no_grad():
        torch.testing.assert_close(program.module()(**inputs), module(**inputs), rtol=1e-4, atol=1e-4)


def test_refusals():
    x = torch.zeros(2, 5, 3)
    with pytest.raises(ValueError, match=r"`module` must be in evaluation mode"):
        export(nn.FCN(3, 4).train(), {"x": x})
    with pytest.raises(ValueError, match=r"`inputs` must have an example of each argument"):
        export(nn.FCN(3, 4).eval(), {})
    with pytest.raises(ValueError, match=r"`inputs` must be among x, values, .*, got series"):
        export(nn.FCN(3, 4).eval(), {"series": x})
    with pytest.raises(ValueError, match=r"`x` must have at least 2 sequences of 2 steps.*got \(1, 5, 3\)"):
        export(nn.FCN(3, 4).eval(), {"x": x[:1]})
