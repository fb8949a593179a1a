"""The linear layer: torch's values, and the same bits on any number of threads."""

import pytest
import torch
from torch.testing import assert_close

from seq2tens.nn.dense import Dense


@pytest.mark.parametrize("shape", [(16, 128), (3, 5, 128), (128,), (0, 128)])
def test_values_are_those_of_torch(shape):
    layer, x = Dense(128, 9).double(), torch.randn(*shape, dtype=torch.float64)
    assert_close(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias))


def test_gradients_do_not_depend_on_threads():
    torch.manual_seed(0)
    layer, x = Dense(128, 9), torch.randn(16, 128)
    gradients = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        gradients.append(torch.autograd.grad(layer(x).square().sum(), layer.weight)[0])
    torch.set_num_threads(1)
    assert torch.equal(gradients[0], gradients[1])
    assert torch.equal(gradients[0], gradients[2])
