"""Differences of adjacent steps: the kernel against its definition."""

from functools import partial

import pytest
import torch

from seq2tens.ops import dispatch
from seq2tens.ops.difference import cpu, difference, reference

SHAPES = [(1, 1, 1), (3, 1, 5), (2, 7, 3), (16, 29, 128), (5, 4, 0), (0, 4, 3)]


def draw(*shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_kernel_has_the_bits_of_the_definition(shape, reverse, dtype):
    x = draw(*shape, dtype=dtype).requires_grad_()
    assert dispatch.choose("difference", None, x, reverse) is cpu.difference
    y, expected = difference(x, reverse=reverse), reference.difference(x, reverse)
    assert torch.equal(y, expected)
    dy = draw(*shape, dtype=dtype).flip(2)
    assert torch.equal(*(torch.autograd.grad(value, x, dy)[0] for value in (y, expected)))


def test_by_hand():
    x = torch.tensor([1.0, 4.0, 2.0]).view(1, 3, 1)
    assert difference(x).flatten().tolist() == [1.0, 3.0, -2.0]
    assert difference(x, reverse=True).flatten().tolist() == [-3.0, 2.0, 2.0]


@pytest.mark.parametrize("reverse", [False, True])
def test_derivatives(reverse):
    x = draw(2, 4, 3).requires_grad_()
    assert torch.autograd.gradcheck(partial(difference, reverse=reverse), x)
    assert torch.autograd.gradgradcheck(partial(difference, reverse=reverse), x)


def test_strided_tensors():
    x = draw(6, 9, 8).transpose(0, 1)[:, ::2, 1::2]
    assert torch.equal(difference(x), reference.difference(x, False))


def test_transforms_and_tracing_use_the_definition():
    x = draw(3, 5, 2)
    assert torch.equal(torch.func.vmap(lambda x: difference(x[None])[0])(x), difference(x))
    _, tangent = torch.func.jvp(difference, (x,), (x,))
    assert torch.equal(tangent, difference(x))
    assert torch.equal(torch.compile(difference, backend="eager", fullgraph=True)(x), difference(x))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda x: x.half(), "neither float32"),
        (lambda x: x[0], "3 axes"),
        (lambda x: x.to("meta"), "on meta"),
    ],
)
def test_what_the_kernel_refuses(change, reason):
    assert reason in cpu.unsupported(change(draw(2, 4, 3)), False)
