"""Contributions add up to the difference that they explain, for every network."""

import numpy as np
import pytest
import torch

from explaining.cases import Chain, networks, outputs, randomized, sequence
from nn.small import Small
from seq2tens import nn
from seq2tens.explaining import explain

NETWORKS = dict(networks())


def assert_adds_up(explanation, output, baseline_output):
    difference = output - baseline_output
    assert explanation.output == pytest.approx(output, rel=1e-10)
    assert explanation.baseline_output == pytest.approx(baseline_output, rel=1e-10)
    assert explanation.variables.sum() == pytest.approx(difference, rel=1e-10)
    assert explanation.singles.sum() + explanation.pairs.sum() == pytest.approx(difference, rel=1e-10)
    assert (np.tril(explanation.pairs) == 0).all()


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("steps", [1, 2, 19])
def test_against_the_mean(name, steps):
    network, x = randomized(NETWORKS[name]), sequence(steps)
    explanation = explain(network, x, target=2)
    assert explanation.variables.shape == (steps, 3)
    assert explanation.pairs.shape == (steps, steps)
    assert_adds_up(explanation, *outputs(network, x, torch.zeros_like(x), 2))


def test_a_network_of_ones_own():
    features = Small()
    features.out_features = 14
    network, x = randomized(Chain(features)), sequence(9, channels=2)
    explanation = explain(network, x, target=2)
    assert (explanation.pairs != 0).any()
    assert_adds_up(explanation, *outputs(network, x, torch.zeros_like(x), 2))


@pytest.mark.parametrize("name", NETWORKS)
def test_against_another_sequence(name):
    network, x, baseline = randomized(NETWORKS[name], seed=1), sequence(11), sequence(11, seed=1)
    explanation = explain(network, x, target=0, baseline=baseline)
    assert_adds_up(explanation, *outputs(network, x, baseline, 0))
    # a slope between two points is that between them the other way round
    back = explain(network, baseline, target=0, baseline=x)
    np.testing.assert_allclose(back.variables, -explanation.variables, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["fcn", "resnet", "ls2t recursive depth 2 order 3"])
def test_nothing_differs_from_itself(name):
    x = sequence(6)
    explanation = explain(randomized(NETWORKS[name]), x, baseline=x)
    assert explanation.output == explanation.baseline_output
    for parts in (explanation.variables, explanation.singles, explanation.pairs):
        assert (parts == 0).all()


def test_a_channel_that_does_not_differ_adds_nothing():
    network, x = randomized(NETWORKS["fcn-ls2t recursive depth 2 order 2"]), sequence(9)
    x[:, 1] = 0
    variables = explain(network, x).variables
    assert (variables[:, 1] == 0).all()
    assert (variables[:, [0, 2]] != 0).all()


def test_a_channel_that_is_not_looked_at_adds_nothing():
    network, x = randomized(nn.DeepLS2T(3, 5, 2, 3)), sequence(9)
    network.features.blocks[0].ls2t.weight.data[:, 2] = 0
    variables = explain(network, x).variables
    assert (variables[:, 2] == 0).all()
    assert (variables[:, :2] != 0).all()


def test_tiny_differences_are_the_gradient():
    network, x = randomized(NETWORKS["fcn-ls2t independent depth 2 order 3"], n_classes=1), sequence(9)
    leaf = x.double().requires_grad_()
    network.double()(leaf[None]).sum().backward()
    change = 1e-5 * sequence(9, seed=1).double()
    found = explain(network, x.double() + change, baseline=x.double() - change)
    torch.testing.assert_close(
        torch.from_numpy(found.variables), 2 * change * leaf.grad, rtol=1e-3, atol=1e-9
    )


@pytest.mark.parametrize(
    "options",
    [{"lift_order": 2}, {"decay": 0.9}, {"normalize": True}, {"time": "centred"}, {"reverse": True}],
)
def test_other_layers_below_the_last(options):
    """The first layer may be of any kind."""
    first = nn.LS2TBlock(3, 4, 3, return_sequences=True, **options)
    last = nn.LS2TBlock(12, 4, 2, return_sequences=False)
    network, x = randomized(Chain(first, torch.nn.ReLU(), last)), sequence(8)
    assert_adds_up(explain(network, x, target=1), *outputs(network, x, torch.zeros_like(x), 1))


def test_the_output_is_the_target_against_the_others():
    network, x = randomized(NETWORKS["fcn"], n_classes=2), sequence(9)
    second, first = explain(network, x), explain(network, x, target=0)
    assert (second.target, first.target) == ("1", "0")
    assert second.output == pytest.approx(-first.output, rel=1e-12)
    np.testing.assert_allclose(first.variables, -second.variables, rtol=1e-9)
    three = randomized(NETWORKS["fcn"], n_classes=3)
    logits = three(x[None])[0]
    assert explain(three, x).target == str(int(logits.argmax()))
    alone = randomized(NETWORKS["fcn"], n_classes=1)
    assert explain(alone, x).output == pytest.approx(alone(x[None]).item(), rel=1e-4)


def test_the_model_is_left_as_it_was():
    network, x = randomized(nn.FCNLS2T(3, 4, 5, 1, 2, dropout=0.5, spatial_dropout=0.5)), sequence(9)
    expected = explain(network, x)
    network.train()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    with torch.inference_mode():
        found = explain(network, x[None])
    assert found.output == expected.output
    assert network.training
    assert all(module.training and not module._forward_hooks for module in network.modules())
    assert all(parameter.requires_grad for parameter in network.parameters())
    assert network.features.ls2t.blocks[0].ls2t.backend is None
    assert before.keys() == network.state_dict().keys()
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())
