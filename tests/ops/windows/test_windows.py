import pytest
import torch
from torch.autograd import forward_ad
from torch.testing import assert_close

from contracts import problem
from kernels import shifted, with_threads
from seq2tens.ops import dispatch, make_chains
from seq2tens.ops.ls2t import Functionals
from seq2tens.ops.windows import cpu, reference, slide


def draw(order=3, weights="recursive", lift=1, *, backend="reference", **sizes):
    options = problem(order, weights, lift, **sizes)
    options["x"] /= max(1, options["x"].shape[1]) ** 0.5
    chains = make_chains(order, weights, False)
    coefficients = options["lift_coefficients"]
    return options["x"], Functionals(
        options["weight"], options["bias"], coefficients, None, chains, False, backend
    )


def check(functionals, x, mask, window, stride):
    """Against the definition in float64."""
    wide = [None if t is None else t.double() for t in functionals[:3]]
    target = reference.slide(Functionals(*wide, *functionals[3:]), x.double(), mask, window, stride)
    found = cpu.slide(functionals, x, mask, window, stride)
    assert found.dtype == x.dtype
    tolerance = 1e-12 if x.dtype == torch.float64 else 1e-4
    assert_close(found.double(), target, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 5, 8, 16, 17])
@pytest.mark.parametrize("batch", [0, 1, 3])
def test_kernel_against_the_definition(batch, width, dtype):
    x, functionals = draw(batch=batch, time=40, width=width, dtype=dtype)
    for window, stride in [(1, 1), (7, 3), (19, 1), (20, 2), (21, 50), (39, 1), (40, 1)]:
        check(functionals, x, None, window, stride)


@pytest.mark.parametrize(
    ("weights", "order", "lift"), [("independent", 3, 1), ("independent", 4, 3), ("recursive", 1, 1)]
)
def test_words_and_lifts(weights, order, lift):
    x, functionals = draw(order, weights, lift, time=30, width=3)
    mask = torch.rand(2, 30, generator=torch.Generator().manual_seed(0)) < 0.7
    x[~mask] = torch.nan
    check(functionals._replace(bias=None), x.nan_to_num(), None, 9, 2)
    check(functionals, x, mask, 9, 2)


def test_windows_longer_than_a_product():
    """More steps than the kernel multiplies at a time."""
    x, functionals = draw(batch=1, time=700, width=3)
    check(functionals, x, None, 300, 7)
    check(functionals, x[:, :1], None, 1, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_threads_and_alignment_change_nothing(dtype):
    x, functionals = draw(batch=3, time=400, width=20, dtype=dtype)
    one = cpu.slide(functionals, x, None, 50, 1)
    for threads in (2, 3):
        moved = functionals._replace(weight=shifted(functionals.weight), bias=shifted(functionals.bias))
        with with_threads(threads):
            assert torch.equal(cpu.slide(moved, shifted(x), None, 50, 1), one)


def test_arrays_in_any_order():
    x, functionals = draw(time=20)
    weight = functionals.weight.transpose(0, 2).contiguous().transpose(0, 2)
    mask = torch.ones(20, 2, dtype=torch.bool).T
    found = cpu.slide(functionals._replace(weight=weight), x.mT.contiguous().mT, mask, 6, 1)
    assert torch.equal(found, cpu.slide(functionals, x, mask.contiguous(), 6, 1))


class TestWhoRuns:
    """The kernel where it can, else the definition."""

    def test_the_kernel(self):
        x, functionals = draw(backend=None)
        assert dispatch.choose("windows", None, x) is cpu.slide
        assert torch.equal(slide(functionals, x, None, 3, 1), cpu.slide(functionals, x, None, 3, 1))

    def test_transforms(self):
        x, functionals = draw(backend=None)
        target = cpu.slide(functionals, x, None, 3, 1)
        assert_close(torch.func.vmap(lambda x: slide(functionals, x[None], None, 3, 1)[0])(x), target)
        with forward_ad.dual_level():
            assert dispatch.choose("windows", None, forward_ad.make_dual(x, x)) is reference.slide
