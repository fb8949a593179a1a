import pytest
import torch

from seq2tens.ops import pooling

STEEP = pooling.STEEPNESS


def paths(rows=5, time=11, width=32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    path = torch.randn(rows, time, width, generator=generator)
    lengths = torch.tensor([11, 1, 7, 2, 9])[:rows]
    path[torch.arange(time) >= lengths[:, None]] = torch.nan  # padding must not be looked at
    return path, lengths, torch.randn(width, generator=generator)


@pytest.mark.parametrize("width", [1, 8, 32, 33])
def test_share_and_peak_of_each_sequence(width):
    path, lengths, threshold = paths(width=width)
    share, peak = pooling.pool_path(path, lengths, threshold)
    for i, n in enumerate(lengths):
        inside = path[i, :n]
        ramp = ((inside - threshold) * STEEP + 0.5).clamp(0, 1).mean(dim=0)
        torch.testing.assert_close(share[i], ramp)
        torch.testing.assert_close(peak[i], inside.amax(dim=0))


def test_far_from_the_threshold_a_share_is_a_count():
    path, lengths, _ = paths()
    share, _ = pooling.pool_path(path * 1e6, lengths, torch.zeros(32))
    for i, n in enumerate(lengths):
        torch.testing.assert_close(share[i], (path[i, :n] > 0).float().mean(dim=0))


@pytest.mark.parametrize(("width", "groups"), [(32, 4), (32, 1), (16, 8), (8, 4)])
def test_contests(width, groups):
    path, lengths, _ = paths(width=width)
    wins, losses = pooling.pool_contest(path, lengths, groups)
    for i, n in enumerate(lengths):
        rivals = path[i, :n].unflatten(1, (-1, groups))
        top, bottom = rivals.amax(dim=1, keepdim=True), rivals.amin(dim=1, keepdim=True)
        won = ((1 - (top - rivals) * STEEP).clamp(min=0) * top).mean(dim=0).flatten()
        lost = (1 - (rivals - bottom) * STEEP).clamp(min=0).mean(dim=0).flatten()
        torch.testing.assert_close(wins[i], won)
        torch.testing.assert_close(losses[i], lost)


def test_company_and_padding_change_nothing():
    path, lengths, threshold = paths()
    together = (*pooling.pool_path(path, lengths, threshold), *pooling.pool_contest(path, lengths, 4))
    for i, n in enumerate(lengths):
        alone, own = path[i : i + 1, :n], lengths[i : i + 1]
        apart = (*pooling.pool_path(alone, own, threshold), *pooling.pool_contest(alone, own, 4))
        assert all(torch.equal(a[i], b[0]) for a, b in zip(together, apart, strict=True))
