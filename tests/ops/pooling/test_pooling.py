import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from kernels import shifted, with_threads
from seq2tens import functional as F
from seq2tens.ops import dispatch, pooling
from seq2tens.ops.pooling import Blocks, cpu, reference

STEEP = 8.0


def paths(rows=5, time=11, width=32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    path = torch.randn(rows, time, width, generator=generator)
    lengths = torch.tensor([11, 1, 7, 2, 9])[:rows]
    path[torch.arange(time) >= lengths[:, None]] = torch.nan  # padding must not be looked at
    return path, lengths, torch.randn(width, generator=generator)


class TestPoolsOfPaths:
    """The definition, sequence by sequence."""

    @pytest.mark.parametrize("width", [1, 8, 33])
    def test_ramps(self, width):
        path, lengths, threshold = paths(width=width)
        share, stretch, changes = pooling.pool_path(path, lengths, threshold, STEEP)
        for i, n in enumerate(lengths):
            ramp = ((path[i, :n] - threshold) * STEEP + 0.5).clamp(0, 1)
            runs = [torch.stack([ramp[j : k + 1].prod(0) for j in range(k + 1)]).sum(0) for k in range(n)]
            assert_close(share[i], ramp.mean(dim=0))
            assert_close(stretch[i], torch.stack(runs).amax(0) / n)
            assert_close(changes[i], ramp.diff(dim=0).abs().sum(0) / n)

    def test_far_from_the_threshold_pools_are_counts(self):
        path, lengths, _ = paths()
        share, stretch, changes = pooling.pool_path(path * 1e6, lengths, torch.zeros(32), STEEP)
        for i, n in enumerate(lengths):
            above = path[i, :n] > 0
            assert_close(share[i], above.float().mean(dim=0))
            assert_close(stretch[i], torch.tensor([longest_run(column) for column in above.T]) / n)
            assert_close(changes[i], (above[1:] != above[:-1]).sum(0) / n)

    @pytest.mark.parametrize(("width", "groups"), [(32, 4), (32, 1), (6, 3)])
    def test_contests(self, width, groups):
        path, lengths, _ = paths(width=width)
        wins, losses = reference.pool_contest(path, lengths, groups)
        steep = reference.CONTEST_STEEPNESS
        for i, n in enumerate(lengths):
            rivals = path[i, :n].unflatten(1, (-1, groups))
            top, bottom = rivals.amax(dim=1, keepdim=True), rivals.amin(dim=1, keepdim=True)
            won = ((1 - (top - rivals) * steep).clamp(min=0) * top).mean(dim=0).flatten()
            lost = (1 - (rivals - bottom) * steep).clamp(min=0).mean(dim=0).flatten()
            assert_close(wins[i], won)
            assert_close(losses[i], lost)


def longest_run(above):
    longest = run = 0
    for step in above:
        run = run + 1 if step else 0
        longest = max(longest, run)
    return longest


def problem(batch, time, channels=2, order=3, *, taps=7, chosen=2, widest=5, count=3, width=32):
    """Arguments of `pool_blocks`; beyond its length a sequence is NaN."""
    generator = torch.Generator().manual_seed(batch + time + order)

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    def integers(most, *shape):
        return torch.randint(most, shape, generator=generator)

    lengths = 1 + integers(time, batch)
    x = normal(2, batch, time, channels)
    x[:, torch.arange(time) >= lengths[:, None]] = torch.nan
    blocks = Blocks(
        source=integers(2, count),
        channels=integers(channels, count, chosen),
        dilation=1 + integers(widest, count),
        taps=normal(count, taps, chosen, width) / (taps * chosen) ** 0.5,
        picks=integers(width, count, order, width),
        gains=0.5 + normal(count, order, width).abs(),
        decay=torch.rand(count, width, generator=generator),
        threshold=normal(count, width),
    )
    return x, lengths, blocks, 4, STEEP


SHAPES = {
    "one step": (problem(1, 1), problem(3, 1, order=2, taps=1)),
    "one level": (problem(3, 20, order=1),),
    "two levels": (problem(4, 30, 1, order=2, chosen=1),),
    "three levels": (problem(5, 36), problem(5, 37), problem(4, 150, 3, chosen=3, widest=20)),
    "four levels": (problem(4, 73, 16, order=4, chosen=16),),
    "six levels": (problem(2, 40, order=6),),
    "wider than the sequences": (problem(4, 9, widest=30),),
    "no sequences": (problem(0, 5),),
}
PROBLEMS = [pytest.param(p, id=f"{name} {i}") for name, ps in SHAPES.items() for i, p in enumerate(ps)]


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("arguments", PROBLEMS)
def test_the_kernel_against_the_definition(arguments, groups):
    x, lengths, blocks, _, steepness = arguments
    for steep in (steepness, 512.0):
        found = cpu.pool_blocks(x, lengths, blocks, groups, steep)
        assert_close(found, reference.pool_blocks(x, lengths, blocks, groups, steep), atol=2e-4, rtol=1e-5)


def test_the_definition_is_that_of_convolution_and_layer():
    x, lengths, blocks, groups, steepness = problem(2, 12, order=3, chosen=1, count=1, widest=1)
    x = torch.where(torch.arange(12)[:, None] < lengths[:, None, None], x, 0.0)
    _, channels, _, taps, picks, gains, decay, threshold = (part[0] for part in blocks)
    padded = torch.nn.functional.pad(x[blocks.source[0]][..., channels], (0, 0, 3, 3))
    responses = F.convolve(padded, taps.permute(2, 1, 0).contiguous())
    weight = torch.nn.functional.one_hot(picks, 32).transpose(1, 2) * gains[:, None]
    levels = F.ls2t(responses, weight, order=3, decay=decay)
    comparison = pooling.Comparison(threshold, groups, steepness)
    pooled = pooling.pool_paths(responses, levels, lengths, comparison)
    assert_close(reference.pool_blocks(x, lengths, blocks, groups, steepness)[:, 0], pooled)


@pytest.mark.parametrize("step", [0, 45])
def test_nan_reaches_what_it_does_in_the_definition(step):
    x, lengths, blocks, groups, steepness = problem(3, 50, chosen=1, taps=3, count=1)
    x, lengths = torch.where(x.isnan(), 0.0, x), torch.tensor([50, 50, 20])
    missing = blocks._replace(taps=blocks.taps.clone(), threshold=blocks.threshold.clone())
    missing.taps[..., 3] = torch.nan
    for path, tables in ((x, missing), (x.index_fill(2, torch.tensor([step]), torch.nan), blocks)):
        found = cpu.pool_blocks(path, lengths, tables, groups, steepness)
        expected = reference.pool_blocks(path, lengths, tables, groups, steepness)
        assert found.isnan().any()
        assert_close(found, expected, equal_nan=True, atol=2e-4, rtol=1e-5)


def test_company_and_padding_change_nothing():
    x, lengths, *rest = problem(6, 90)
    together = cpu.pool_blocks(x, lengths, *rest)
    for i, n in enumerate(lengths.tolist()):
        assert torch.equal(cpu.pool_blocks(x[:, i : i + 1, :n], lengths[i : i + 1], *rest)[0], together[i])


def test_threads_and_alignment_change_nothing():
    x, lengths, blocks, *rest = problem(40, 300)
    one = cpu.pool_blocks(x, lengths, blocks, *rest)
    for threads in (2, 3):
        with with_threads(threads):
            moved = Blocks(*(shifted(part) for part in blocks))
            assert torch.equal(cpu.pool_blocks(shifted(x), shifted(lengths), moved, *rest), one)


def test_blocks_change_nothing_for_each_other():
    x, lengths, blocks, *rest = problem(5, 50)
    together = cpu.pool_blocks(x, lengths, blocks, *rest)
    for i in range(3):
        alone = Blocks(*(part[i : i + 1] for part in blocks))
        assert torch.equal(cpu.pool_blocks(x, lengths, alone, *rest)[:, 0], together[:, i])


def test_arrays_in_any_order():
    x, lengths, blocks, *rest = problem(3, 20)
    strange = blocks._replace(taps=blocks.taps.mT.contiguous().mT, picks=blocks.picks.int())
    found = cpu.pool_blocks(x.transpose(1, 3).contiguous().transpose(1, 3), lengths.int(), strange, *rest)
    assert torch.equal(found, cpu.pool_blocks(x, lengths, blocks, *rest))


def test_long_sums_are_exact():
    steps = 2**20
    _, _, blocks, *rest = problem(1, 1, 1, order=1, taps=1, chosen=1, count=1)
    blocks = blocks._replace(taps=torch.ones(1, 1, 1, 32), threshold=torch.full((1, 32), 0.75))
    found = cpu.pool_blocks(torch.full((2, 1, steps, 1), 0.75 + 1 / 64), torch.tensor([steps]), blocks, *rest)
    assert found[0, 0, 0].eq(0.625).all()


class TestWhoRuns:
    """The kernel where it can, else the definition."""

    arguments = problem(2, 5)

    def test_the_kernel(self):
        assert dispatch.choose("pool_blocks", None, *self.arguments) is cpu.pool_blocks

    def test_other_widths_groups_and_dtypes(self):
        x, lengths, blocks, _, steepness = self.arguments
        for arguments in (
            problem(2, 5, width=16),
            (x, lengths, blocks, 8, steepness),
            (x.double(), lengths, blocks, 4, steepness),
        ):
            assert dispatch.choose("pool_blocks", None, *arguments) is reference.pool_blocks
            assert pooling.pool_blocks(*arguments).isfinite().all()

    def test_derivatives(self):
        x, lengths, blocks, *rest = problem(2, 4, count=1, width=8, order=2)
        x = torch.where(x.isnan(), 0.0, x).double().requires_grad_()
        wide = Blocks(*(part.double() if part.is_floating_point() else part for part in blocks))
        assert torch.autograd.gradcheck(lambda x: pooling.pool_blocks(x, lengths, wide, *rest), (x,))

    @pytest.mark.slow
    def test_without_a_library(self):
        code = (
            "import test_pooling as t; from seq2tens.ops import native, pooling;"
            "assert native.unavailable(), 'the library was found';"
            "assert pooling.pool_blocks(*t.problem(2, 5)).isfinite().all()"
        )
        folders = (Path(__file__).parent, Path(__file__).parents[2], os.environ.get("PYTHONPATH", ""))
        environment = {
            **os.environ,
            "SEQ2TENS_LIBRARY": "/nowhere/libseq2tens.so",
            "PYTHONPATH": os.pathsep.join(map(str, folders)),
        }
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)
