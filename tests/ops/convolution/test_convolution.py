"""Convolution over time: the kernels against torch's own."""

import pytest
import torch
from torch.testing import assert_close

from contracts import EXACT
from seq2tens.ops import dispatch
from seq2tens.ops.convolution import convolve, cpu, gemm, reference, taps_first

SHAPES = [(1, 5, 3, 4, 5), (4, 29, 13, 64, 8), (16, 8, 65, 33, 5), (3, 300, 7, 40, 3), (2, 4, 1, 1, 1)]


def problem(shape, bias=True, dtype=torch.float64):
    batch, time, in_features, out_features, kernel = shape
    generator = torch.Generator().manual_seed(0)
    sizes = [(batch, time, in_features), (out_features, in_features, kernel), (out_features,)]
    return [
        torch.randn(*size, generator=generator, dtype=dtype).requires_grad_()
        for size in sizes[: 3 if bias else 2]
    ] + ([] if bias else [None])


def results(function, leaves):
    y = function(*leaves)
    gradient = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view(y.shape)
    return [y, *torch.autograd.grad(y, [t for t in leaves if t is not None], gradient)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bias", [False, True])
def test_kernel_agrees_with_the_definition(shape, bias):
    leaves = problem(shape, bias)
    assert cpu.unsupported(*leaves) is None
    names = ("y", "dx", "dweight", "dbias")
    pairs = zip(results(convolve, leaves), results(reference.convolve, leaves), strict=True)
    for name, (value, expected) in zip(names, pairs, strict=False):
        assert_close(value, expected, **EXACT, msg=lambda text, name=name: f"{name}: {text}")


def test_derivatives():
    leaves = problem((2, 6, 2, 3, 3))
    assert torch.autograd.gradcheck(convolve, leaves)
    assert torch.autograd.gradgradcheck(convolve, leaves)


def test_a_sequence_has_the_same_bits_alone_and_in_a_batch():
    x, weight, bias = (t.detach() for t in problem((7, 40, 9, 20, 5), dtype=torch.float32))
    y = convolve(x, weight, bias)
    for i in range(7):
        assert torch.equal(convolve(x[i : i + 1], weight, bias)[0], y[i])


def test_strided_tensors():
    x, weight, bias = (t.detach() for t in problem((3, 12, 6, 5, 4)))
    assert_close(
        convolve(x[:, ::2, ::2], weight[:, ::2], bias),
        reference.convolve(x[:, ::2, ::2], weight[:, ::2], bias),
    )


@pytest.mark.parametrize("shape", SHAPES[:4])
@pytest.mark.parametrize("bias", [False, True])
def test_weights_with_their_taps_first_are_multiplied_at_once(shape, bias):
    x, weight, bias = (None if t is None else t.detach() for t in problem(shape, bias))
    laid_out = taps_first(weight)
    assert torch.equal(laid_out, weight)
    assert dispatch.choose("convolution", None, x, laid_out, bias) is gemm.convolve
    assert_close(convolve(x, laid_out, bias), reference.convolve(x, weight, bias), **EXACT)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda x, w, b: (x, w.contiguous(), b), "laid out"),
        (lambda x, w, b: (x[:, :2], w, b), "shapes"),
        (lambda x, w, b: (x[..., :2], w, b), "shapes"),
        (lambda x, w, b: (x, w.requires_grad_(), b), "derivatives"),
    ],
)
def test_what_is_not_multiplied_at_once(change, reason):
    x, weight, bias = (t.detach() for t in problem((3, 12, 6, 5, 4)))
    assert reason in gemm.unsupported(*change(x, taps_first(weight), bias))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda x, w, b: (x.half(), w.half(), b.half()), "half precision"),
        (lambda x, w, b: (x, w.double(), b), "several dtypes"),
        (lambda x, w, b: (x[:0], w, b), "shapes"),
        (lambda x, w, b: (x[:, :2], w, b), "shapes"),
        (lambda x, w, b: (x.to("meta"), w, b), "on meta"),
    ],
)
def test_what_torch_does(change, reason):
    given = change(*(t.detach() for t in problem((3, 12, 6, 5, 4), dtype=torch.float32)))
    assert reason in cpu.unsupported(*given)
