import pytest
import torch
from torch.testing import assert_close

from contracts import problem
from kernels import shifted, with_threads
from seq2tens.ops import dispatch, make_chains
from seq2tens.ops.intervals import BLOCK, Tables, cpu, reference
from seq2tens.ops.intervals.parts import Parts, Rows
from seq2tens.ops.ls2t import Functionals


def draw(width, dtype=torch.float64, batch=2, weights="recursive", order=3, count=200):
    """Tables of some sequences, and rows of them."""
    options = problem(order, weights, 1, batch=batch, time=5 * BLOCK, width=width, dtype=dtype)
    chains = make_chains(order, weights, False)
    x = options["x"] / options["x"].shape[1] ** 0.5
    functionals = Functionals(options["weight"], options["bias"], None, None, chains, False, None)
    parts = Tables(functionals, x, None).parts
    generator = torch.Generator().manual_seed(0)
    tables = (parts.ends, parts.stretches, parts.stretches, parts.beginnings)
    rows = Rows(*(torch.randint(len(table), (count,), generator=generator) for table in tables))
    rows.left[::3] = rows.right[::2] = len(parts.stretches) - 1
    return parts, rows, chains


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 5, 8, 16, 17, 33])
@pytest.mark.parametrize(("batch", "count"), [(1, 1), (1, 0), (3, 200)])
def test_kernel_against_the_definition(batch, count, width, dtype):
    parts, rows, chains = draw(width, dtype, batch, count=count)
    found = cpu.look_up(parts, rows, chains)
    target = reference.look_up(Parts(*(t.double() for t in parts)), rows, chains)
    assert found.shape == (count, 3, width)
    tolerance = 1e-13 if dtype == torch.float64 else 1e-5
    scale = target.abs().amax((0, 2), keepdim=True) if count else 1.0
    assert found.dtype == dtype
    assert_close(found / scale, target / scale, rtol=0, atol=tolerance, check_dtype=False)


@pytest.mark.parametrize(("weights", "order"), [("independent", 4), ("recursive", 1), ("recursive", 6)])
def test_words(weights, order):
    arguments = draw(3, weights=weights, order=order)
    assert_close(cpu.look_up(*arguments), reference.look_up(*arguments))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_threads_and_alignment_change_nothing(dtype):
    parts, rows, chains = draw(33, dtype, count=2000)
    one = cpu.look_up(parts, rows, chains)
    for threads in (2, 3):
        with with_threads(threads):
            assert torch.equal(cpu.look_up(Parts(*map(shifted, parts)), rows, chains), one)


def test_arrays_in_any_order():
    parts, rows, chains = draw(5)
    strange = (
        Parts(*(t.mT.contiguous().mT for t in parts)),
        Rows(*(r.flip(0).contiguous().flip(0) for r in rows)),
    )
    assert torch.equal(cpu.look_up(*strange, chains), cpu.look_up(parts, rows, chains))


def test_who_runs():
    parts, _, _ = draw(2)
    assert dispatch.choose("intervals", None, *parts) is cpu.look_up
    ends = parts.ends.clone().requires_grad_()
    assert dispatch.choose("intervals", None, ends, *parts[1:]) is reference.look_up
    with torch.no_grad():
        assert dispatch.choose("intervals", None, ends, *parts[1:]) is cpu.look_up
