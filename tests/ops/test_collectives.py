"""Communication between processes, against the same on one: values, and gradients of the sum of losses."""

import pytest
import torch
from torch.testing import assert_close

from distributed.exchanges import exchanged, fold_of, ignored, plain, tensor_of
from distributed.processes import together

RANKS = 3


@pytest.mark.slow
def test_gathering_and_summing():
    expected = torch.stack([tensor_of(rank).T for rank in range(RANKS)])
    for gathered, total, objects in together(plain, RANKS):
        assert torch.equal(gathered, expected)
        assert_close(total, expected.sum(0), rtol=1e-15, atol=1e-15)
        assert objects == [{"rank": rank} for rank in range(RANKS)]


@pytest.mark.slow
def test_an_exchange_is_differentiated_through_all_ranks():
    inputs = [tensor_of(rank).requires_grad_() for rank in range(RANKS)]
    outputs = [fold_of(rank)(torch.stack(inputs)) for rank in range(RANKS)]
    torch.stack([y.square().sum() for y in outputs]).sum().backward()
    for (output, gradient), y, x in zip(together(exchanged, RANKS), outputs, inputs, strict=True):
        expected = {"y": y.detach(), "dx": x.grad}
        assert_close({"y": output, "dx": gradient}, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_a_fold_may_ignore_the_others():
    first, *others = together(ignored, RANKS)
    assert_close(first, torch.full((2, 3), RANKS - 1.0).double(), rtol=0, atol=0)
    assert all(not gradient.any() for gradient in others)
