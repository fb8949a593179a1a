import math

import pytest
import torch
from torch.testing import assert_close

from seq2tens.nn import LevelNorm, MaskedBatchNorm, MaskedConv, mean_pool
from seq2tens.nn.alignment import align, restore

EXACT = {"rtol": 1e-10, "atol": 1e-10}


def sequences(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_convolution_is_a_sum_over_the_window():
    x = sequences(2, 5, 3)
    for kernel in (1, 2, 3, 5, 8):
        conv = MaskedConv(3, 4, kernel).double()
        padded = torch.nn.functional.pad(x, (0, 0, (kernel - 1) // 2, kernel // 2))
        target = sum(padded[:, j : j + 5] @ conv.weight[..., j].T for j in range(kernel)) + conv.bias
        assert_close(conv(x), target, **EXACT)
        longer, mask = torch.nn.functional.pad(x, (0, 0, 0, 2), value=7.0), torch.arange(7) < 5
        assert_close(conv(longer, mask.expand(2, 7))[:, :5], target, **EXACT)


@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm_counts_only_what_counts(affine):
    x, mask = sequences(4, 6, 3) * 3 + 2, torch.arange(6) < torch.tensor([6, 2, 0, 3])[:, None]
    norm = MaskedBatchNorm(3, affine=affine, momentum=0.25).double()
    assert len(list(norm.parameters())) == (2 if affine else 0)
    counted = x[mask]
    target = (counted - counted.mean(0)) / (counted.var(0, unbiased=False) + 1e-3).sqrt()
    assert_close(norm(x, mask)[mask], target, **EXACT)
    assert_close(norm.running_mean, 0.25 * counted.mean(0), **EXACT)
    assert_close(norm.running_var, 0.75 + 0.25 * counted.var(0, unbiased=False), **EXACT)
    plain = MaskedBatchNorm(3, affine=affine, momentum=0.25).double()
    assert_close(plain(counted), target, **EXACT)
    assert_close(plain.running_var, norm.running_var, **EXACT)
    assert_close(plain.eval()(counted), norm.eval()(x, mask)[mask], **EXACT)


def test_batch_norm_derivatives():
    norm, x = MaskedBatchNorm(2).double(), sequences(3, 4, 2).requires_grad_()
    mask = torch.arange(4) < torch.tensor([4, 1, 2])[:, None]
    weight, bias = torch.tensor([0.5, 2.0], dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    inputs = (x, weight.requires_grad_(), bias.requires_grad_())

    def function(x, weight, bias):
        parameters = {"weight": weight, "bias": bias}
        return torch.func.functional_call(norm, parameters, (x, mask))[mask]

    assert torch.autograd.gradcheck(function, inputs)
    assert torch.autograd.gradgradcheck(function, inputs)


def test_batch_norm_of_nothing_and_of_one_value():
    norm, x = MaskedBatchNorm(2), torch.ones(1, 1, 2)
    assert (norm(x) == 0).all()
    assert norm(x, torch.zeros(1, 1, dtype=torch.bool)).isfinite().all()
    assert (norm.running_var >= 0).all()


def test_level_norm_with_a_mask():
    y, mask = sequences(4, 6, 2, 3), torch.arange(6) < torch.tensor([6, 2, 0, 3])[:, None]
    norm = LevelNorm(2, eps=0.0, momentum=1.0).double()
    z = norm(y, mask)[mask]
    assert_close(norm.running_mean, y[mask].mean((0, 2)), **EXACT)
    assert_close(z.var((0, 2), unbiased=False), torch.ones(2, dtype=torch.float64), **EXACT)


def test_mean_pool():
    x = sequences(3, 4, 2)
    mask = torch.arange(4) < torch.tensor([4, 1, 0])[:, None]
    assert_close(mean_pool(x, mask), torch.stack([x[0].mean(0), x[1, 0], torch.zeros(2).double()]), **EXACT)
    assert_close(mean_pool(x), x.mean(1), **EXACT)


def test_align_and_restore():
    x, mask = torch.full((2, 6, 2), math.nan), torch.zeros(2, 6, dtype=torch.bool)
    x[:, [1, 3, 4]], mask[:, [1, 3, 4]] = sequences(2, 3, 2).float(), True
    aligned, front, source = align(x, mask, None)
    assert_close(aligned[:, :3], x[:, [1, 3, 4]])
    assert (aligned[:, 3:] == 0).all()
    assert front.tolist() == [[True] * 3 + [False] * 3] * 2
    assert_close(restore(aligned, source)[mask], x[mask])
    assert (restore(aligned, source)[~mask] == 0).all()
