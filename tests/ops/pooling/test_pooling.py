import os
import subprocess
import sys

import pytest
import torch
from torch.autograd import forward_ad
from torch.testing import assert_close

from kernels import shifted, with_threads
from seq2tens.ops import dispatch, pooling
from seq2tens.ops.pooling import cpu, reference

STEEP = pooling.STEEPNESS


def paths(rows=5, time=11, width=32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    path = torch.randn(rows, time, width, generator=generator)
    lengths = torch.tensor([11, 1, 7, 2, 9])[:rows]
    path[torch.arange(time) >= lengths[:, None]] = torch.nan  # padding must not be looked at
    return path, lengths, torch.randn(width, generator=generator)


@pytest.mark.parametrize("width", [1, 8, 32, 33])
def test_pools_of_each_sequence(width):
    path, lengths, threshold = paths(width=width)
    pools = pooling.pool_path(path, lengths, threshold)
    for i, n in enumerate(lengths):
        ramp = ((path[i, :n] - threshold) * STEEP + 0.5).clamp(0, 1)
        runs = [torch.stack([ramp[j : k + 1].prod(0) for j in range(k + 1)]).sum(0) for k in range(n)]
        assert_close(pools.share[i], ramp.mean(dim=0))
        assert_close(pools.stretch[i], torch.stack(runs).amax(0) / n)
        assert_close(pools.changes[i], ramp.diff(dim=0).abs().sum(0) / n)


def longest_run(above):
    longest = run = 0
    for step in above:
        run = run + 1 if step else 0
        longest = max(longest, run)
    return longest


def test_far_from_the_threshold_pools_are_counts():
    path, lengths, _ = paths()
    pools = pooling.pool_path(path * 1e6, lengths, torch.zeros(32))
    for i, n in enumerate(lengths):
        above = path[i, :n] > 0
        assert_close(pools.share[i], above.float().mean(dim=0))
        assert_close(pools.stretch[i], torch.tensor([longest_run(column) for column in above.T]) / n)
        assert_close(pools.changes[i], (above[1:] != above[:-1]).sum(0) / n)


@pytest.mark.parametrize(("width", "groups"), [(32, 4), (32, 1), (16, 8), (8, 4)])
def test_contests(width, groups):
    path, lengths, _ = paths(width=width)
    wins, losses = pooling.pool_contest(path, lengths, groups)
    for i, n in enumerate(lengths):
        rivals = path[i, :n].unflatten(1, (-1, groups))
        top, bottom = rivals.amax(dim=1, keepdim=True), rivals.amin(dim=1, keepdim=True)
        won = ((1 - (top - rivals) * STEEP).clamp(min=0) * top).mean(dim=0).flatten()
        lost = (1 - (rivals - bottom) * STEEP).clamp(min=0).mean(dim=0).flatten()
        assert_close(wins[i], won)
        assert_close(losses[i], lost)


def test_company_and_padding_change_nothing():
    path, lengths, threshold = paths()
    together = (*pooling.pool_path(path, lengths, threshold), *pooling.pool_contest(path, lengths, 4))
    for i, n in enumerate(lengths):
        alone, own = path[i : i + 1, :n], lengths[i : i + 1]
        apart = (*pooling.pool_path(alone, own, threshold), *pooling.pool_contest(alone, own, 4))
        assert all(torch.equal(a[i], b[0]) for a, b in zip(together, apart, strict=True))


def all_pools(implementation, path, lengths, threshold, groups):
    return (
        *implementation.pool_path(path, lengths, threshold, STEEP),
        *implementation.pool_contest(path, lengths, groups, STEEP),
    )


def problem(batch, time, width, dtype):
    generator = torch.Generator().manual_seed(batch + width)
    path = torch.randn(batch, time, width, generator=generator, dtype=torch.float64).to(dtype)
    lengths = torch.randint(1, time + 1, (batch,), generator=generator)
    return path, lengths, torch.randn(width, generator=generator, dtype=torch.float64).to(dtype)


SIZES = [
    (1, 1),
    (5, 5),
    (6, 2),
    (16, 4),
    (17, 17),
    (24, 8),
    (32, 4),
    (34, 2),
    (64, 1),
    (64, 64),
    (96, 3),
    (128, 2),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("width", "groups"), SIZES)
@pytest.mark.parametrize(("batch", "time"), [(0, 3), (1, 1), (1, 200), (4, 65)])
def test_kernels_against_the_definition(batch, time, width, groups, dtype):
    path, lengths, threshold = problem(batch, time, width, dtype)
    found = all_pools(cpu, path, lengths, threshold, groups)
    for pool, target in zip(found, all_pools(reference, path, lengths, threshold, groups), strict=True):
        assert_close(pool, target)


@pytest.mark.parametrize("width", [6, 32])
def test_nan_reaches_its_functional_and_rivals(width):
    path, lengths, threshold = problem(3, 20, width, torch.float32)
    path[1, 0, 3] = torch.nan
    found = all_pools(cpu, path, lengths, threshold, 2)
    for pool, target in zip(found, all_pools(reference, path, lengths, threshold, 2), strict=True):
        assert_close(pool, target, equal_nan=True)
        assert pool[1].isnan().any()


def test_long_sums_are_exact():
    path = torch.full((1, 2**24 + 64, 1), 0.25)
    share, *_ = cpu.pool_path(path, torch.tensor([path.shape[1]]), torch.tensor([0.25 - 1 / 32]), STEEP)
    assert share.item() == 0.75


def test_threads_and_alignment_change_nothing():
    path, lengths, threshold = problem(40, 100, 32, torch.float32)
    one = all_pools(cpu, path, lengths, threshold, 4)
    for threads in (2, 3):
        with with_threads(threads):
            again = all_pools(cpu, shifted(path), lengths, shifted(threshold), 4)
        assert all(map(torch.equal, one, again))


def test_arrays_in_any_order():
    path, lengths, threshold = problem(3, 20, 8, torch.float64)
    strange = path.transpose(0, 2).contiguous().transpose(0, 2)
    found = all_pools(cpu, strange, lengths.int(), threshold.flip(0).contiguous().flip(0), 4)
    assert all(map(torch.equal, found, all_pools(cpu, path, lengths, threshold, 4)))


def test_half_precision_is_pooled_in_single():
    path, lengths, threshold = problem(3, 20, 8, torch.float16)
    pools = pooling.pool_path(path, lengths, threshold)
    assert pools.share.dtype == torch.float32
    assert_close(pools.stretch, reference.pool_path(path.float(), lengths, threshold, STEEP)[1])


class TestWhoRuns:
    """The kernel where it can, else the definition."""

    path, lengths, threshold = problem(2, 5, 8, torch.float64)

    def test_the_kernel(self):
        assert dispatch.choose("pool_path", None, self.path) is cpu.pool_path
        assert dispatch.choose("pool_contest", None, self.path) is cpu.pool_contest

    def test_derivatives(self):
        for pool, given in ((pooling.pool_path, self.threshold), (pooling.pool_contest, 4)):
            path = self.path.clone().requires_grad_()
            assert torch.autograd.gradcheck(lambda p, f=pool, g=given: f(p, self.lengths, g), (path,))

    def test_transforms(self):
        stretch = pooling.pool_path(self.path, self.lengths, self.threshold).stretch
        run = torch.func.vmap(
            lambda path: pooling.pool_path(path[None], self.lengths[:1], self.threshold)[1][0]
        )
        assert_close(run(self.path[:1]), stretch[:1])
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(self.path, torch.ones_like(self.path))
            share = pooling.pool_path(dual, self.lengths, self.threshold).share
            step = 1e-6
            moved = pooling.pool_path(self.path + step, self.lengths, self.threshold).share
            before = pooling.pool_path(self.path, self.lengths, self.threshold).share
            assert_close(forward_ad.unpack_dual(share).tangent, (moved - before) / step, atol=1e-6, rtol=1e-6)

    @pytest.mark.slow
    def test_without_a_library(self):
        code = (
            "import torch; from seq2tens.ops import native, pooling;"
            "path = torch.ones(1, 3, 2);"
            "share, stretch, changes = pooling.pool_path(path, torch.tensor([3]), path[0, 0]);"
            "assert native.unavailable(), 'the library was found';"
            "assert share.eq(0.5).all() and stretch.eq(0.875 / 3).all() and changes.eq(0).all()"
        )
        environment = {**os.environ, "SEQ2TENS_LIBRARY": "/nowhere/libseq2tens.so"}
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)
