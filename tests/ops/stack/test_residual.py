"""A stack with shortcuts as one operation, against the operations it stands for."""

import copy

import pytest
import torch
from torch.testing import assert_close

from contracts import EXACT
from seq2tens.nn import FCNLS2T
from seq2tens.ops import make_chains
from seq2tens.ops.batch_norm import Running, Settings
from seq2tens.ops.stack import Ends, Layer, Options, Shortcut, reference, shortcut_stack

SETTINGS = Settings(1e-3, scale=0.7, momentum=0.3)


def problem(batch=5, time=7, features=3, near=6, width=16, order=2, masked=True, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    draw = lambda *sizes: torch.randn(*sizes, generator=generator).to(dtype).requires_grad_()  # noqa: E731
    mask = torch.arange(time) < torch.randint(1, time + 1, (batch, 1), generator=generator)
    counts = mask[..., None] if masked else torch.ones(batch, time, 1)
    paths = [(draw(batch, time, n) * counts).detach().requires_grad_() for n in (near, features)]
    sizes = ((near, width), (order * width, width))
    layers = [Layer(draw(order, n, width), draw(order, width)) for n, width in sizes]
    chains = make_chains(order, "recursive", False)
    options = [Options(chains, whole, Settings(1e-3, width, momentum=0.2)) for whole in (True, False)]
    end = order * width
    ends = Ends(
        draw(near),
        draw(near),
        Shortcut(draw(near, features, 1), draw(near), draw(near), draw(near)),
        Shortcut(draw(end, near, 1), draw(end), draw(end), draw(end)),
    )
    return *paths, mask if masked else None, layers, options, ends


def leaves_of(near, x, layers, ends):
    return [near, x, *ends[:2], *ends.start, *ends.end, *(tensor for layer in layers for tensor in layer)]


def running_of(layers, ends):
    outside = (ends.weight, ends.start.matrix, ends.end.matrix)
    channels = map(len, (*(layer.weight for layer in layers), *outside))
    return [Running(*torch.ones(2, n, dtype=ends.weight.dtype)) for n in channels]


def run(function, near, x, mask, layers, options, ends):
    running = running_of(layers, ends)
    y = function(near, x, mask, layers, options, ends, SETTINGS, running)
    found = torch.autograd.grad(y.sin().sum(), leaves_of(near, x, layers, ends))
    return y, *(each for pair in running for each in pair), *found


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("sizes", [{}, {"batch": 2, "time": 300}, {"batch": 2, "time": 1}])
def test_the_kernel_agrees_with_the_definition(sizes, order, masked):
    given = problem(**sizes, order=order, masked=masked)
    results = [run(function, *given) for function in (shortcut_stack, reference.residual_stack)]
    for found, expected in zip(*results, strict=True):
        assert_close(found, expected, **EXACT)


def test_derivatives():
    near, x, mask, layers, options, ends = problem(batch=3, time=4, features=2, near=2)

    def values(near, x, *parameters):
        outside, inside = parameters[:10], parameters[10:]
        ends = Ends(*outside[:2], Shortcut(*outside[2:6]), Shortcut(*outside[6:]))
        pairs = [Layer(*inside[i : i + 2]) for i in (0, 2)]
        running = running_of(pairs, ends)
        return shortcut_stack(near, x, mask, pairs, options, ends, SETTINGS, running)[:, ::9]

    leaves = leaves_of(near, x, layers, ends)
    assert torch.autograd.gradcheck(values, leaves)
    assert torch.autograd.gradgradcheck(values, leaves, atol=1e-4)


def test_the_graph_may_be_walked_twice():
    near, x, mask, layers, options, ends = problem()
    y = shortcut_stack(near, x, mask, layers, options, ends, SETTINGS, running_of(layers, ends))
    leaves = leaves_of(near, x, layers, ends)
    once, again = (torch.autograd.grad(y.sum(), leaves, retain_graph=True) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(once, again, strict=True))


@pytest.mark.parametrize("lengths", [None, [9, 3, 1, 7, 5], [9, 0, 1, 7, 0]])
@pytest.mark.parametrize("sizes", [{"width": 16}, {"width": 5}, {"width": 16, "weights": "independent"}])
def test_a_network_trains_as_if_its_parts_were_called_in_turn(sizes, lengths):
    torch.manual_seed(0)
    check_parts(FCNLS2T(3, 16, **sizes).double(), lengths)


@pytest.mark.parametrize("number", range(3))
def test_normalisations_that_follow_differently(number):
    torch.manual_seed(0)
    network = FCNLS2T(3, 16, width=16).double()
    (network.fcn_norm, network.input_shortcut.norm, network.ls2t.blocks[0].norm)[number].momentum = 0.4
    check_parts(network, [9, 3, 1, 7, 5])


def check_parts(whole, lengths):
    parts = copy.deepcopy(whole)
    parts._at_once = lambda *_: None
    x = torch.randn(5, 9, 3, dtype=torch.float64, requires_grad=True)
    results = []
    for network in (whole, parts):
        y = network(x, lengths=None if lengths is None else torch.tensor(lengths))
        gradients = torch.autograd.grad(y.sin().sum(), [x, *network.parameters()])
        results.append([y, *gradients, *network.buffers()])
    for found, expected in zip(*results, strict=True):
        assert_close(found, expected, **EXACT)
