"""Batch normalisation over the rows that count: the kernel against its definition."""

import pytest
import torch
from torch.testing import assert_close

from contracts import EXACT
from seq2tens.ops import normalize
from seq2tens.ops.normalize import normalize_rows

SHAPES = [(30, 5, 1), (700, 128, 1), (4000, 2, 64), (1, 3, 4)]


def problem(shape, masked=True, affine=True, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    draw = lambda *sizes: torch.randn(*sizes, generator=generator).to(dtype)  # noqa: E731
    mask = torch.rand(shape[0], generator=generator) < 0.7 if masked else None
    leaves = [draw(*shape) * 3 + 1, *((draw(shape[1]), draw(shape[1])) if affine else ())]
    return [t.requires_grad_() for t in leaves], mask, draw(*shape)


def run(function, leaves, mask, gradient):
    x, weight, bias = leaves if len(leaves) == 3 else (*leaves, None, None)
    y, mean, variance = function(x, mask, weight, bias, 1e-3)
    return y, mean, variance, *torch.autograd.grad(y, leaves, gradient)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("affine", [False, True])
def test_kernel_agrees_with_the_definition(shape, masked, affine):
    given = problem(shape, masked, affine)
    for found, expected in zip(run(normalize_rows, *given), run(normalize._composed, *given), strict=True):
        assert_close(found, expected, **EXACT)


def test_derivatives():
    (x, weight, bias), mask, _ = problem((6, 2, 3))
    rows = lambda *leaves: normalize_rows(leaves[0], mask, *leaves[1:], 1e-3).rows  # noqa: E731
    assert torch.autograd.gradcheck(rows, (x, weight, bias))
    assert torch.autograd.gradgradcheck(rows, (x, weight, bias))


def test_rows_that_do_not_count_do_not_matter():
    (x, weight, bias), mask, _ = problem((50, 4, 1))
    y = normalize_rows(x, mask, weight, bias, 1e-3).rows
    other = torch.where(mask[:, None, None], x, 1e6)
    assert torch.equal(normalize_rows(other, mask, weight, bias, 1e-3).rows, y)
    assert not y[~mask].any()


def test_same_bits_whatever_the_number_of_threads():
    given = problem((3000, 64, 1), dtype=torch.float32)
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        results.append(run(normalize_rows, *given))
    torch.set_num_threads(1)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_transforms_and_empty_batches_take_the_definition():
    (x, weight, bias), mask, _ = problem((8, 3, 1))
    flat = lambda t: normalize_rows(t, mask, weight, bias, 1e-3).rows.square().sum()  # noqa: E731
    assert_close(torch.func.grad(flat)(x.detach()), torch.autograd.grad(flat(x), x)[0], **EXACT)
    assert normalize_rows(x[:0], None, weight, bias, 1e-3).rows.shape == (0, 3, 1)
