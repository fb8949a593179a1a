"""Modules and tensors that cannot be explained, each refused with a sentence."""

import numpy as np
import pytest
import torch

from explaining.cases import Chain, randomized, sequence
from seq2tens import nn
from seq2tens.explaining import explain


@pytest.fixture
def network():
    return randomized(nn.FCNLS2T(3, 4, 4, 1, 2), n_classes=2)


def test_tensors(network):
    x = sequence(5)
    with pytest.raises(ValueError, match="`x` must hold one sequence, got 2"):
        explain(network, torch.stack([x, x]))
    with pytest.raises(ValueError, match=r"`x` must have the axes \(time, channels\) .*, got shape \(3,\)"):
        explain(network, x[0])
    with pytest.raises(ValueError, match=r"at least one step, got shape \(0, 3\)"):
        explain(network, x[:0])
    with pytest.raises(TypeError, match=r"`x` must be a torch\.Tensor, got ndarray"):
        explain(network, np.zeros((5, 3)))
    with pytest.raises(ValueError, match=r"`x` must have 3 channels \(in_features\), got 2"):
        explain(network, x[:, :2])
    with pytest.raises(ValueError, match=r"`baseline` must have shape that of `x` = \(5, 3\), got \(4, 3\)"):
        explain(network, x, baseline=x[:4])
    with pytest.raises(ValueError, match=r"`x` must have finite logits, got \[nan, nan\]"):
        explain(network, torch.full_like(x, torch.nan))
    with pytest.raises(ValueError, match=r"`names` must name the 3 variables .*, got 1"):
        explain(network, x, names=["a"])


@pytest.mark.parametrize("target", [2, -1, "death", 1.0])
def test_targets(network, target):
    with pytest.raises(
        ValueError, match=rf"`target` must lie in 0..1 \(the logits of `model`\), got {target!r}"
    ):
        explain(network, sequence(5), target=target)


@pytest.mark.parametrize(
    ("options", "named"),
    [({"lift_order": 2}, "lift_order"), ({"decay": 0.9}, "decay"), ({"normalize": True}, "no")],
)
def test_last_layers_of_another_kind(options, named):
    features = nn.DeepLS2T(3, 4, 1, 2, **options)
    with pytest.raises(ValueError, match=rf"`model` must end with an LS2T layer .*, got one with \['{named}"):
        explain(randomized(features), sequence(5))


def bent(before, after):
    """A network with something before and after its layer."""
    return randomized(Chain(before, nn.DeepLS2T(3, 4, 1, 2), after))


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("kind", [torch.nn.Tanh, torch.nn.Softplus])
def test_parts_that_are_not_known_are_found_out(kind, place):
    parts = [torch.nn.Identity(), torch.nn.Identity()]
    assert explain(bent(*parts), sequence(5)).output != 0
    parts[place] = kind()
    with pytest.raises(ValueError, match="`model` must consist of linear maps, ReLU and products"):
        explain(bent(*parts), sequence(5))


def test_modules_that_read_no_sequence():
    with pytest.raises(ValueError, match=r"`model` must hold a network of `seq2tens.nn`, .*, got Sequential"):
        explain(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(15, 2)), sequence(5))
