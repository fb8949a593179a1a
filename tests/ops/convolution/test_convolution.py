"""Convolution over time: the kernels against torch's own."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

from contracts import EXACT
from seq2tens.ops import dispatch
from seq2tens.ops.convolution import convolve, cpu, prepare, reference
from seq2tens.ops.convolution.reference import Convolution

SHAPES = [(1, 5, 3, 4, 5), (4, 29, 13, 64, 8), (16, 8, 65, 33, 5), (3, 300, 7, 40, 3), (2, 4, 1, 1, 1)]


def problem(shape, bias=True, dtype=torch.float64):
    batch, time, in_features, out_features, kernel = shape
    generator = torch.Generator().manual_seed(0)
    sizes = [(batch, time, in_features), (out_features, in_features, kernel), (out_features,)]
    return [
        torch.randn(*size, generator=generator, dtype=dtype).requires_grad_()
        for size in sizes[: 3 if bias else 2]
    ] + ([] if bias else [None])


def by_reference(x, weight, bias=None, **options):
    return reference.convolve(Convolution(x, weight, bias, **options))


def results(function, leaves, **options):
    y = function(*leaves, **options)
    gradient = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view(y.shape)
    return [y, *torch.autograd.grad(y, [t for t in leaves if t is not None], gradient)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("padding", "masked"), [((0, 0), False), ((2, 3), False), ((0, 4), True), ((0, 0), True)]
)
def test_kernel_agrees_with_the_definition(shape, bias, padding, masked):
    leaves = problem(shape, bias)
    mask = torch.rand(shape[:2], generator=torch.Generator().manual_seed(1)) < 0.7 if masked else None
    options = {"padding": padding, "mask": mask}
    assert cpu.unsupported(Convolution(*leaves, **options)) is None
    names = ("y", "dx", "dweight", "dbias")
    pairs = zip(results(convolve, leaves, **options), results(by_reference, leaves, **options), strict=True)
    for name, (value, expected) in zip(names, pairs, strict=False):
        assert_close(value, expected, **EXACT, msg=lambda text, name=name: f"{name}: {text}")


def test_derivatives():
    leaves = problem((2, 6, 2, 3, 3))
    mask = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    for options in ({}, {"padding": (1, 2), "mask": mask}):
        assert torch.autograd.gradcheck(partial(convolve, **options), leaves)
        assert torch.autograd.gradgradcheck(partial(convolve, **options), leaves)


def test_a_sequence_has_the_same_bits_alone_and_in_a_batch():
    x, weight, bias = (t.detach() for t in problem((7, 40, 9, 20, 5), dtype=torch.float32))
    y = convolve(x, weight, bias)
    padded = convolve(x, weight, bias, padding=(2, 2))
    assert torch.equal(padded[:, 2:-2], y)
    for i in range(7):
        assert torch.equal(convolve(x[i : i + 1], weight, bias)[0], y[i])
        assert torch.equal(convolve(x[i : i + 1], weight, bias, padding=(2, 2))[0], padded[i])


def test_strided_tensors():
    x, weight, bias = (t.detach() for t in problem((3, 12, 6, 5, 4)))
    assert_close(
        convolve(x[:, ::2, ::2], weight[:, ::2], bias),
        by_reference(x[:, ::2, ::2], weight[:, ::2], bias),
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bias", [False, True])
def test_prepared_weights_give_the_same_bits(shape, bias):
    x, weight, bias = (None if t is None else t.detach() for t in problem(shape, bias))
    assert dispatch.choose("convolution_prepared", None, weight, bias) is cpu.prepare
    run = prepare(weight, bias)
    assert torch.equal(run(x), convolve(x, weight, bias))
    assert torch.equal(run(x[:1]), convolve(x[:1], weight, bias))
    assert_close(reference.prepare(weight, bias)(x), convolve(x, weight, bias), **EXACT)


def test_prepared_weights_refuse_other_channels():
    x, weight, bias = (t.detach() for t in problem((3, 12, 6, 5, 4)))
    with pytest.raises(ValueError, match="`x` must have 6 channels, got 2"):
        prepare(weight, bias)(x[..., :2])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda w, b: (w.half(), b.half()), "half precision"),
        (lambda w, b: (w.long(), b.long()), "several"),
        (lambda w, b: (w, b[:1]), "shapes"),
        (lambda w, b: (w[0], None), "shapes"),
        (lambda w, b: (w[..., :0], b), "shapes"),
    ],
)
def test_what_the_kernels_do_not_prepare(change, reason):
    _, weight, bias = (t.detach() for t in problem((3, 12, 6, 5, 4)))
    assert reason in cpu.prepare_unsupported(*change(weight, bias))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda x, w, b: (x.half(), w.half(), b.half()), "half precision"),
        (lambda x, w, b: (x, w.double(), b), "several dtypes"),
        (lambda x, w, b: (x[..., :2], w, b), "shapes"),
        (lambda x, w, b: (x, w, b[:1]), "shapes"),
        (lambda x, w, b: (x, w, b[:, None]), "shapes"),
        (lambda x, w, b: (x, w, b, torch.ones(3, 11, dtype=torch.bool)), "mask"),
        (lambda x, w, b: (x, w, b, torch.ones(3, 12)), "mask"),
        (lambda x, w, b: (x, w, b, None, (-1, 0)), "negative"),
        (lambda x, w, b: (x[:0], w, b), "empty"),
        (lambda x, w, b: (x[:, :2], w, b), "empty"),
        (lambda x, w, b: (x, w[..., :0], b), "empty"),
        (lambda x, w, b: (x, w[:0], b[:0]), "empty"),
        (lambda x, w, b: (x.to("meta"), w, b), "on meta"),
    ],
)
def test_what_torch_does(change, reason):
    given = change(*(t.detach() for t in problem((3, 12, 6, 5, 4), dtype=torch.float32)))
    assert reason in cpu.unsupported(Convolution(*given))
