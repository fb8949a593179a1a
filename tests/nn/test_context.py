"""A network is written once, and runs whole, live, sharded and in chunks without being known anywhere."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from distributed.processes import together
from nn.small import build, draw, learned, on_a_rank
from seq2tens.nn import FCN, Lags, Network, Stream, Whole, checkpoint_chunks, mean_pool
from seq2tens.nn.context import call_in_context

EXACT = {"rtol": 1e-10, "atol": 1e-10}
STEPS = 17
cuts = st.lists(st.integers(1, STEPS - 1), max_size=5, unique=True)


def parts(x, cuts):
    return [x[:, a:b] for a, b in itertools.pairwise([0, *sorted(cuts), STEPS])]


@given(cuts=cuts)
def test_live(cuts):
    """The output after each step is that of the steps so far."""
    network, x = build(), draw(STEPS)
    stream = Stream(network)
    found = torch.cat([stream.push(part) for part in parts(x, cuts)], dim=1)
    assert stream.ahead == 2
    with torch.no_grad():
        expected = torch.stack([network(x[:, :t]) for t in range(1, STEPS + 1)], dim=1)
    assert_close(found, expected, **EXACT)


@given(cuts=cuts)
def test_chunks_with_gradients(cuts):
    network, twin, x = build(), build(), draw(STEPS).requires_grad_()
    expected = learned(twin, x, twin(x))
    x.grad = None
    outputs, _ = checkpoint_chunks(network, parts(x, cuts))
    assert len(outputs) == len(cuts) + 1
    found = learned(network, x, outputs[-1])
    assert_close(found, expected, **EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("cut", [1, 9])
def test_sharded(training, cut):
    network, x = build(training), draw(STEPS).requires_grad_()
    expected = learned(network, x, network(x))
    whole_input = expected.pop("input")
    found = [
        {name: torch.tensor(values, dtype=torch.float64) for name, values in part.items()}
        for part in together(on_a_rank, 2, training, cut)
    ]
    inputs = torch.cat([part.pop("input") for part in found], dim=1) / 2  # each rank has the whole loss
    assert_close(inputs, whole_input, **EXACT)
    for part in found:
        assert_close(part, expected, **EXACT)


def test_steps_that_are_not_valid_are_left_out():
    class Pooled(Network):
        in_features = 2

        def compute(self, x, context):
            return context.mean(context.halo(x + 1, 1, 1)[:, 2:] + context.clock(x, "index"))

    class Shifted(Network):
        def compute(self, x, context):
            return context.clear(context.halo(x + 1, 1, 1)[:, 2:] + context.clock(x, "index"))

    x, mask = draw(6), torch.tensor([[True, False, True, True, False, False], [True] * 6])
    valid = x[:1, [0, 2, 3]]
    assert_close(Pooled()(x, mask)[:1], Pooled()(valid), **EXACT)
    steps = Shifted()(x, mask)
    assert_close(steps[:1, [0, 2, 3]], Shifted()(valid), **EXACT)
    assert not steps[:1, [1, 4, 5]].any()
    assert_close(mean_pool(steps, mask), Pooled()(x, mask), **EXACT)
    with pytest.raises(ValueError, match=r"`x` must have 2 channels \(in_features\), got 3"):
        Pooled()(torch.zeros(1, 2, 3))
    with pytest.raises(ValueError, match="`mask` and `lengths` must be None in a `context`"):
        Pooled()(x, mask, context=Whole())


def test_modules_in_turn_are_what_they_are_alone():
    torch.manual_seed(0)
    modules = nn.Sequential(Lags(2), nn.Linear(6, 3), nn.Sequential(FCN(3, 4), nn.ReLU())).double().eval()
    assert_close(call_in_context(modules, draw(9), Whole()), modules(draw(9)), **EXACT)


class Excited(nn.Module):
    def forward(self, x, context=None):
        context = context or Whole()
        return context.mean(x * context.mean(x)[:, None])


def test_what_needs_the_whole_sequence_at_every_step_is_not_streamed():
    with pytest.raises(ValueError, match="`module` must not look at the future to be streamed"):
        Stream(Excited())
