"""Same bits whatever the number of threads, and wherever tensors lie in memory."""

import pytest
import torch

from fused import OPERATIONS, assert_same_bits, results_of


@pytest.fixture
def threads():
    yield torch.set_num_threads
    torch.set_num_threads(1)


def shifted(by):
    """Put tensors so many numbers further than where torch would put them."""

    def place(tensor):
        memory = torch.empty(tensor.numel() + by, dtype=tensor.dtype)
        return memory[by:].view(tensor.shape).copy_(tensor)

    return place


@pytest.mark.parametrize("operation", OPERATIONS)
def test_any_number_of_threads(operation, threads):
    expected = results_of([operation])
    assert all(values.isfinite().all() for values in expected[operation.__name__])
    for number in (2, 3):
        threads(number)
        assert_same_bits(results_of([operation]), expected)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_any_alignment(operation):
    expected = results_of([operation])
    for by in (1, 2, 3, 4, 7, 8, 15):
        assert_same_bits(results_of([operation], shifted(by)), expected)
