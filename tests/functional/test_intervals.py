import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from contracts import EXACT, ORDERS, problem
from seq2tens.functional import PrefixLS2T, ls2t, transfer
from seq2tens.ops import intervals


def without_decay(*arguments, **options):
    found = problem(*arguments, **options)
    return {name: value for name, value in found.items() if name != "decay"}


def every_interval(time):
    pairs = [(start, stop) for start in range(time + 1) for stop in range(start, time + 1)]
    return torch.tensor(pairs).T


def one_by_one(options, start, stop, mask=None):
    """Levels of each interval of every sequence, from one recursion for each start."""
    found = options["x"].new_zeros(
        len(options["x"]), len(start), options["order"], options["weight"].shape[2]
    )
    for a in start.unique().tolist():
        own = ((start == a) & (stop > a)).nonzero()[:, 0]
        if len(own):
            part = slice(a, int(stop[own].max()))
            rest = {**options, "x": options["x"][:, part], "mask": None if mask is None else mask[:, part]}
            found[:, own] = ls2t(**rest)[:, stop[own] - a - 1]
    return found


@pytest.fixture(params=["fused", "composed"])
def prepare(request):
    """Both ways to evaluate: gradients are taken through operations of torch."""
    if request.param == "fused":
        return lambda options: options
    return lambda options: {**options, "x": options["x"].clone().requires_grad_()}


@pytest.mark.parametrize("block", [2, 32])
@pytest.mark.parametrize(("order", "weights", "lift_order"), ORDERS)
def test_every_interval(order, weights, lift_order, block, prepare, monkeypatch):
    monkeypatch.setattr(intervals, "BLOCK", block)
    options = without_decay(order, weights, lift_order, time=11 if block == 2 else 35, width=3)
    options["x"] /= 3
    mask = torch.rand(2, options["x"].shape[1], generator=torch.Generator().manual_seed(1)) < 0.7
    start, stop = every_interval(options["x"].shape[1])
    for chosen in (None, mask):
        found = PrefixLS2T(**prepare(options), mask=chosen)(start, stop)
        assert_close(found.detach(), one_by_one(options, start, stop, chosen), **EXACT)


@given(
    time=st.integers(1, 300),
    width=st.integers(1, 20),
    batch=st.integers(1, 3),
    weights=st.sampled_from(["recursive", "independent"]),
    seed=st.integers(0, 10**6),
)
def test_random_intervals(time, width, batch, weights, seed):
    options = without_decay(3, weights, 2, time=time, width=width, batch=batch, seed=seed)
    options["x"] /= math.sqrt(time)
    gen = torch.Generator().manual_seed(seed)
    start, stop = torch.randint(0, time + 1, (2, 12), generator=gen).sort(0).values
    assert_close(PrefixLS2T(**options)(start, stop), one_by_one(options, start, stop), **EXACT)


def test_whose_intervals_they_are():
    options = without_decay(2, "recursive", 1, batch=3, time=70)
    prefix = PrefixLS2T(**options)
    start, stop = torch.tensor([[3, 0, 40], [69, 0, 50]])
    everywhere = prefix(start, stop)
    assert everywhere.shape == (3, 3, 2, 2)
    each = prefix(start.expand(3, 3).flip(1), stop.expand(3, 3).flip(1))
    assert_close(each, everywhere.flip(1), **EXACT)
    sequence = torch.tensor([2, 0, 1])
    assert_close(prefix(start, stop, sequence), everywhere[sequence, torch.arange(3)], **EXACT)
    assert prefix(start[:0], stop[:0]).shape == (3, 0, 2, 2)
    assert prefix(start.int(), stop.short()).dtype == torch.float64


def test_lengths_and_dtypes():
    options = without_decay(2, "recursive", 1, time=80, dtype=torch.float16)
    x = options["x"].clone()
    x[1, 50:] = math.nan
    prefix = PrefixLS2T(**{**options, "x": x}, lengths=torch.tensor([80, 50]))
    found = prefix(torch.tensor([10]), torch.tensor([80]))
    assert found.dtype == torch.float32
    wide = {k: v.double() if isinstance(v, torch.Tensor) else v for k, v in options.items()}
    target = ls2t(**{**wide, "x": wide["x"][1:, 10:50]}, return_sequences=False)
    assert_close(found[1].double(), target, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("weights", ["recursive", "independent"])
def test_first_and_second_derivatives(weights, monkeypatch):
    monkeypatch.setattr(intervals, "BLOCK", 2)
    options = without_decay(3, weights, 2, time=9, features=2)
    start, stop = torch.tensor([[0, 1, 4, 5, 3, 8], [9, 8, 9, 6, 3, 9]])
    mask = torch.rand(2, 9, generator=torch.Generator().manual_seed(0)) < 0.8
    names = ["x", "weight", "bias", "lift_coefficients"]

    def function(*tensors):
        return PrefixLS2T(**{**options, **dict(zip(names, tensors, strict=True))}, mask=mask)(start, stop)

    inputs = tuple(options[name].clone().requires_grad_() for name in names)
    assert torch.autograd.gradcheck(function, inputs, fast_mode=True)
    assert torch.autograd.gradgradcheck(function, inputs, fast_mode=True)


def extended(x, weight, bias, order):
    """The recursion in numbers with 64 bits of mantissa, and the same of absolute values."""
    results = []
    for change in (np.asarray, np.abs):
        wide = [change(t.numpy()).astype(np.longdouble) for t in (x, weight, bias)]
        a = np.einsum("td,mdn->mtn", wide[0], wide[1]) + wide[2][:, None]
        h = [np.ones(weight.shape[2], np.longdouble)] + [np.zeros(weight.shape[2], np.longdouble)] * order
        for t in range(len(x)):
            for m in range(order, 0, -1):
                h[m] = h[m] + h[m - 1] * a[m - 1, t]
        results.append(np.stack(h[1:]))
    return results


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="no numbers wider than float64")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_error_is_within_its_bound(dtype):
    """Steps of very different size, where a quotient of two prefixes is nothing but rounding error."""
    order, time, features, width = 3, 2000, 4, 3
    options = without_decay(order, "recursive", 1, batch=1, time=time, features=features, width=width)
    x = options["x"]
    x[:, :900] *= 1e6
    x[:, 1500:] *= 1e6
    x, weight, bias = (options[name].to(dtype) for name in ("x", "weight", "bias"))
    start = torch.tensor([900, 901, 1000, 950, 990, 700, 3, 1200])
    stop = torch.tensor([1500, 1499, 1001, 981, 1410, 1700, 1998, 1300])
    found = PrefixLS2T(x, weight, bias, order=order)(start, stop)[0]
    blocks = math.ceil(math.log2(time / 32))
    roundings = order * (32 + (order + 1) * (blocks + 3) + features + 3)
    for i, (a, b) in enumerate(zip(start, stop, strict=True)):
        exact, size = extended(x[0, a:b], weight, bias, order)
        error = np.abs(found[i].numpy() - exact)
        assert (error <= roundings * torch.finfo(dtype).eps / 2 * size).all()
    ends = [transfer(x[:, :t], weight, bias, order=order).matrix for t in (900, 1500)]
    quotient = torch.linalg.solve(*ends)[0, :, 0, 1:].T.numpy()
    exact, size = extended(x[0, 900:1500], weight, bias, order)
    error = np.abs(quotient - exact).max(1) / size.max(1)
    assert error[-1] > 1e3 * roundings * torch.finfo(dtype).eps / 2


def test_what_lies_outside_does_not_matter():
    options = without_decay(3, "recursive", 1, time=200)
    start, stop = torch.tensor([[40, 96, 64], [99, 100, 96]])
    clean = PrefixLS2T(**options)(start, stop)
    options["x"][:, :40] = math.nan
    options["x"][:, 100:] = math.inf
    assert torch.equal(PrefixLS2T(**options)(start, stop), clean)


def test_a_long_sequence():
    gen = torch.Generator().manual_seed(0)
    time = 100_000
    x = torch.randn(1, time, 4, generator=gen, dtype=torch.float64) / math.sqrt(time)
    weight, bias = (torch.randn(3, *rest, 16, generator=gen, dtype=torch.float64) for rest in ((4,), ()))
    options = {"x": x, "weight": weight, "bias": bias / time, "order": 3}
    start, stop = torch.randint(0, time + 1, (2, 40), generator=gen).sort(0).values
    error = PrefixLS2T(**options)(start, stop) - one_by_one(options, start, stop)
    assert error.abs().max() < 1e-10


@pytest.mark.parametrize(
    ("start", "stop", "sequence", "message"),
    [
        ([3], [2], None, r"`start` must lie in 0..2 \(`stop`\), got 3 at index 0"),
        ([0, -1], [1, 1], None, "`start` must lie in 0..1 .*, got -1 at index 1"),
        ([0], [6], None, r"`stop` must lie in 0..5 \(the time axis of `x`\), got 6 at index 0"),
        ([0], [1, 2], None, r"`stop` must have shape that of `start` = \(1,\), got \(2,\)"),
        ([[0]], [[1]], None, r"`start` must have shape .* with a batch of 2, got \(1, 1\)"),
        ([0], [1], [2], r"`sequence` must lie in 0..1 \(the batch axis of `x`\), got 2 at index 0"),
        ([0], [1], [0, 1], r"`sequence` must have shape \(intervals,\) = \(1,\), got \(2,\)"),
        ([[0], [0]], [[1], [1]], [0, 1], "`start` must have one axis with `sequence`, got 2"),
    ],
)
def test_wrong_values(start, stop, sequence, message):
    prefix = PrefixLS2T(**without_decay(2, "recursive", 1))
    arguments = [None if a is None else torch.tensor(a) for a in (start, stop, sequence)]
    with pytest.raises(ValueError, match=message):
        prefix(*arguments)


def test_wrong_types():
    prefix = PrefixLS2T(**without_decay(2, "recursive", 1))
    with pytest.raises(TypeError, match=r"`start` must be integers, got torch\.float32"):
        prefix(torch.tensor([0.0]), torch.tensor([1]))
    with pytest.raises(TypeError, match=r"`start` must be a torch\.Tensor, got int"):
        prefix(0, 1)
    with pytest.raises(ValueError, match="`x` must have at least one time step"):
        PrefixLS2T(**{**without_decay(2, "recursive", 1), "x": torch.zeros(2, 0, 3)})
