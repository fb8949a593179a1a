import pytest
import torch
from torch.testing import assert_close

from contracts import EXACT
from seq2tens.functional import Running, batch_norm, masked_mean


@pytest.fixture
def steps():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, 5, 2, 4, generator=generator, dtype=torch.float64)
    return x, torch.arange(5) < torch.tensor([[5], [2], [0]])


def test_means_are_over_the_steps_that_count(steps):
    x, mask = steps
    alone = torch.stack([x[0].mean(0), x[1, :2].mean(0), torch.zeros(2, 4).double()])
    assert_close(masked_mean(x, mask), alone, **EXACT)
    assert_close(masked_mean(x.flatten(2), mask), alone.flatten(1), **EXACT)
    assert_close(masked_mean(x[:, :, 0, 0], mask), alone[:, 0, 0], **EXACT)
    assert_close(masked_mean(x), x.mean(1), **EXACT)


def test_means_over_single_entries(steps):
    x, _ = steps
    chosen = x > 0
    chosen[2, :, 1, 3] = False
    assert_close(masked_mean(x, chosen, dim=(0, 1, 2, 3)), x[chosen].mean(), **EXACT)
    per_channel = masked_mean(x, chosen)
    assert_close(per_channel[0, 1, 2], x[0, :, 1, 2][chosen[0, :, 1, 2]].mean(), **EXACT)
    assert float(per_channel[2, 1, 3]) == 0
    assert_close(masked_mean(x, dim=(0, 1)), x.mean((0, 1)), **EXACT)


def test_batch_norm_follows_the_batch_in_training_only(steps):
    x, mask = steps
    x = x[..., 0]
    running = Running(torch.zeros(2).double(), torch.ones(2).double(), 0.5)
    counted = x[mask]
    mean, variance = counted.mean(0), counted.var(0, unbiased=False)
    y = batch_norm(x, running, mask=mask, eps=0.0)
    assert_close(y[mask], (counted - mean) / variance.sqrt(), **EXACT)
    assert not y[~mask].any()
    assert_close(running.mean, mean / 2, **EXACT)
    assert_close(running.variance, (1 + variance) / 2, **EXACT)
    after = batch_norm(x, running, mask=mask, eps=0.0, training=False)
    assert_close(after[mask], (counted - mean / 2) / ((1 + variance) / 2).sqrt(), **EXACT)
    assert_close(running.mean, mean / 2, **EXACT)
