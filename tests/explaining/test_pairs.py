"""Single steps and pairs of steps, against sums over all subsets of steps, and by hand."""

from itertools import chain, combinations

import numpy as np
import pytest
import torch

from explaining.cases import randomized, sequence
from seq2tens import nn
from seq2tens.estimators.networks import WithHead
from seq2tens.explaining import explain


def subsets(items):
    return chain.from_iterable(combinations(items, n) for n in range(len(items) + 1))


def by_enumeration(network, x, baseline):
    """Inclusion and exclusion: what a set of steps adds that no part of it adds.

    A step takes its increment from `x` if it belongs to the set, else from the baseline.
    """
    rises = [torch.diff(s.double(), dim=0, prepend=torch.zeros(1, s.shape[1])) for s in (x, baseline)]
    steps = range(len(x))

    @torch.no_grad()
    def output(chosen):
        inside = torch.tensor([i in chosen for i in steps])
        path = torch.where(inside[:, None], *rises).cumsum(0)
        return float(network.double()(path[None])[0, 0])

    values = {chosen: output(chosen) for chosen in subsets(steps)}
    singles, pairs = np.zeros(len(x)), np.zeros((len(x), len(x)))
    for chosen in values:
        together = sum((-1) ** (len(chosen) - len(part)) * values[part] for part in subsets(chosen))
        if len(chosen) == 1:
            singles[chosen] += together
        elif chosen:
            pairs[chosen[0], chosen[-1]] += together
    return singles, pairs


@pytest.mark.parametrize("weights", ["recursive", "independent"])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_enumeration(order, weights):
    network = randomized(nn.DeepLS2T(3, 4, 1, order, weights=weights), n_classes=1)
    x, baseline = sequence(6), sequence(6, seed=1)
    singles, pairs = by_enumeration(network, x, baseline)
    found = explain(network, x, baseline=baseline)
    np.testing.assert_allclose(found.singles, singles, atol=1e-11 * np.abs(singles).max())
    np.testing.assert_allclose(
        found.pairs, pairs, atol=1e-11 * max(np.abs(singles).max(), np.abs(pairs).max())
    )
    assert (order == 1) == (np.abs(found.pairs).max() == 0)


def detector():
    """Level 2 of one functional: a rise of channel 0, later one of channel 1."""
    features = nn.DeepLS2T(2, 1, 1, 2, time=None)
    network = WithHead(features, 1)
    with torch.no_grad():
        features.blocks[0].ls2t.weight.copy_(torch.eye(2)[:, :, None])
        network.head.weight.copy_(torch.tensor([[0.0, 1.0]]))
        network.head.bias.zero_()
    return network


def test_the_one_pair_that_matters():
    x = torch.zeros(10, 2)
    x[3:, 0], x[7:, 1] = 2, 5
    found = explain(detector(), x)
    first, *others = found.top_pairs()
    assert (first.first, first.second) == (3, 7)
    assert first.contribution == pytest.approx(10 / np.sqrt(1.001))
    assert all(pair.contribution == 0 for pair in others)
    assert (found.singles == 0).all()
    # the other way round nothing happens
    backwards = explain(detector(), x[:, [1, 0]])
    assert (backwards.pairs == 0).all()
    assert backwards.output == backwards.baseline_output == 0


def test_what_a_step_adds_among_those_of_the_baseline():
    """A rise of channel 1 after one that the baseline has too is the doing of one step."""
    x = torch.zeros(10, 2)
    x[3:, 0] = 2
    baseline = x.clone()
    x[7:, 1] = 5
    found = explain(detector(), x, baseline=baseline)
    assert (found.pairs == 0).all()
    assert found.singles[7] == pytest.approx(10 / np.sqrt(1.001))
    assert found.singles.sum() == found.singles[7]


def test_steps_between_belong_to_the_first_and_the_last():
    features = nn.DeepLS2T(3, 1, 1, 3, time=None)
    network = WithHead(features, 1)
    with torch.no_grad():
        features.blocks[0].ls2t.weight.copy_(torch.eye(3)[:, :, None])
        network.head.weight.copy_(torch.tensor([[0.0, 0.0, 1.0]]))
    x = torch.zeros(9, 3)
    x[1:, 0], x[4:, 1], x[8:, 2] = 1, 1, 1
    pairs = explain(network, x).pairs
    assert np.argwhere(pairs).tolist() == [[1, 8]]


@pytest.mark.parametrize("features", [nn.FCN(3, 4), nn.ResNet(3, (4, 4))])
def test_means_over_time_have_no_pairs(features):
    found = explain(randomized(features), sequence(9))
    assert (found.pairs == 0).all()
    assert (found.singles != 0).any()
