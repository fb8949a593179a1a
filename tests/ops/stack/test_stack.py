"""Normalised layers on top of each other: the kernel against the operations it stands for."""

import pytest
import torch
from torch.testing import assert_close

from contracts import EXACT
from seq2tens.nn import DeepLS2T
from seq2tens.ops import make_chains, native
from seq2tens.ops.batch_norm import Running, Settings
from seq2tens.ops.stack import Layer, Options, normalized_stack, reference


def problem(shape, width, order=2, depth=3, weights="recursive", bias=True, masked=True, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    draw = lambda *sizes: torch.randn(*sizes, generator=generator).to(dtype).requires_grad_()  # noqa: E731
    (batch, time, features), layers, options = shape, [], []
    chains = make_chains(order, weights, False)
    components = max(chains.component) + 1
    for index in range(depth):
        layers.append(Layer(draw(components, features, width), draw(components, width) if bias else None))
        options.append(Options(chains, index < depth - 1, Settings(1e-3, width, momentum=0.3)))
        features = order * width
    mask = torch.arange(time) < torch.randint(1, time + 1, (batch, 1), generator=generator)
    return draw(*shape), mask if masked else None, layers, options


def leaves_of(x, layers):
    return [x, *(parameter for layer in layers for parameter in layer if parameter is not None)]


def running_of(layers, options):
    dtype = layers[0].weight.dtype
    return [Running(*torch.ones(2, len(option.chains.output), dtype=dtype)) for option in options]


def run(function, x, mask, layers, options):
    running = running_of(layers, options)
    y = function(x, mask, layers, options, running)
    found = torch.autograd.grad(y.sin().sum(), leaves_of(x, layers))
    return y, *(each for pair in running for each in pair), *found


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("shape", "width"), [((5, 7, 3), 16), ((3, 300, 2), 32), ((1, 1, 2), 16), ((4, 9, 2), 5)]
)
def test_the_kernel_agrees_with_the_definition(shape, width, order, masked):
    given = problem(shape, width, order, masked=masked, bias=masked)
    for found, expected in zip(run(normalized_stack, *given), run(reference.stack, *given), strict=True):
        assert_close(found, expected, **EXACT)


def test_layers_that_the_kernel_cannot_do():
    given = problem((4, 6, 2), 16, weights="independent")
    for found, expected in zip(run(normalized_stack, *given), run(reference.stack, *given), strict=True):
        assert torch.equal(found, expected)


def test_running_statistics_that_are_parts_of_others():
    x, mask, layers, options = problem((4, 6, 2), 16)
    whole, columns = torch.ones(2, 9, dtype=x.dtype), iter(range(9))
    strided = [Running(whole[:, next(columns)], whole[:, next(columns)]) for _ in layers]
    plain = running_of(layers, options)
    ys = [normalized_stack(x, mask, layers, options, running) for running in (strided, plain)]
    assert_close(*ys, **EXACT)
    for found, expected in zip(strided, plain, strict=True):
        assert_close(found, expected, **EXACT)
    assert whole[:, 6:].eq(1).all()


def test_derivatives():
    x, mask, layers, options = problem((3, 4, 2), 16, depth=2)

    def values(x, *parameters):
        pairs = zip(parameters[::2], parameters[1::2], strict=True)
        return normalized_stack(x, mask, [Layer(*p) for p in pairs], options, running_of(layers, options))[
            :, ::9
        ]

    leaves = leaves_of(x, layers)
    assert torch.autograd.gradcheck(values, leaves)
    assert torch.autograd.gradgradcheck(values, leaves, atol=1e-4)


def test_the_graph_may_be_walked_twice():
    x, mask, layers, options = problem((3, 5, 2), 16)
    y = normalized_stack(x, mask, layers, options, running_of(layers, options))
    once, again = (torch.autograd.grad(y.sum(), leaves_of(x, layers), retain_graph=True) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(once, again, strict=True))


def test_same_bits_whatever_the_number_of_threads():
    given = problem((24, 60, 9), 64, dtype=torch.float32)
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        results.append(run(normalized_stack, *given))
    torch.set_num_threads(1)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_a_network_in_training_runs_as_one_operation(monkeypatch):
    calls = []
    run_kernel = native.run
    monkeypatch.setattr(native, "run", lambda name, call: calls.append(name) or run_kernel(name, call))
    DeepLS2T(3, 16)(torch.randn(4, 5, 3)).sum().backward()
    assert set(calls) == {"stack_forward", "stack_backward"}
