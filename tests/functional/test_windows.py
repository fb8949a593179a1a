import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from contracts import EXACT, ORDERS, problem
from seq2tens.functional import ls2t, sliding_ls2t
from seq2tens.ops.windows import reference


def without_decay(*arguments, **options):
    found = problem(*arguments, **options)
    return {name: value for name, value in found.items() if name != "decay"}


def one_by_one(options, window, stride=1, mask=None):
    levels = []
    for a in range(0, options["x"].shape[1] - window + 1, stride):
        part = slice(a, a + window)
        own = {**options, "x": options["x"][:, part], "mask": None if mask is None else mask[:, part]}
        levels.append(ls2t(**own, return_sequences=False))
    return torch.stack(levels, dim=1)


@pytest.fixture(params=["fused", "composed"])
def prepare(request):
    """Both ways to evaluate: gradients are taken through operations of torch."""
    if request.param == "fused":
        return lambda options: options
    return lambda options: {**options, "x": options["x"].clone().requires_grad_()}


@pytest.mark.parametrize("piece", [2**20, 200, 1])
@pytest.mark.parametrize(("order", "weights", "lift_order"), ORDERS)
def test_every_window(order, weights, lift_order, piece, prepare, monkeypatch):
    monkeypatch.setattr(reference, "PIECE", piece)
    options = without_decay(order, weights, lift_order, time=11, width=3)
    mask = torch.rand(2, 11, generator=torch.Generator().manual_seed(1)) < 0.7
    for window, stride, chosen in [(1, 1, None), (3, 1, mask), (4, 3, None), (6, 2, mask), (11, 4, None)]:
        found = sliding_ls2t(**prepare(options), window=window, stride=stride, mask=chosen)
        assert_close(found.detach(), one_by_one(options, window, stride, chosen), **EXACT)


@given(
    time=st.integers(1, 200),
    share=st.floats(0, 1),
    stride=st.integers(1, 7),
    width=st.integers(1, 20),
    batch=st.integers(1, 3),
    weights=st.sampled_from(["recursive", "independent"]),
    seed=st.integers(0, 10**6),
)
def test_random_windows(time, share, stride, width, batch, weights, seed):
    options = without_decay(3, weights, 1, time=time, width=width, batch=batch, seed=seed)
    window = max(1, round(share * time))
    options["x"] /= math.sqrt(window)
    found = sliding_ls2t(**options, window=window, stride=stride)
    assert_close(found, one_by_one(options, window, stride), **EXACT)


def test_long_windows_in_pieces(prepare, monkeypatch):
    """More steps in a window than a piece has, so that scans go on from borders."""
    monkeypatch.setattr(reference, "PIECE", 1)
    options = without_decay(3, "recursive", 2, time=450)
    options["x"] /= 10
    found = sliding_ls2t(**prepare(options), window=150, stride=30)
    assert_close(found.detach(), one_by_one(options, 150, 30), **EXACT)


def test_several_lengths():
    options = without_decay(2, "recursive", 1, time=9)
    found = sliding_ls2t(**options, window=[2, 5])
    assert [tuple(y.shape) for y in found] == [(2, 8, 2, 2), (2, 5, 2, 2)]
    for y, window in zip(found, (2, 5), strict=True):
        assert_close(y, one_by_one(options, window), **EXACT)


@pytest.mark.parametrize("piece", [2**20, 1])
@pytest.mark.parametrize("weights", ["recursive", "independent"])
def test_first_and_second_derivatives(weights, piece, monkeypatch):
    monkeypatch.setattr(reference, "PIECE", piece)
    options = without_decay(3, weights, 2, time=7, features=2)
    mask = torch.rand(2, 7, generator=torch.Generator().manual_seed(0)) < 0.8
    names = ["x", "weight", "bias", "lift_coefficients"]

    def function(*tensors):
        return sliding_ls2t(**{**options, **dict(zip(names, tensors, strict=True))}, window=3, mask=mask)

    inputs = tuple(options[name].clone().requires_grad_() for name in names)
    assert torch.autograd.gradcheck(function, inputs, fast_mode=True)
    assert torch.autograd.gradgradcheck(function, inputs, fast_mode=True)


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_backends(backend):
    options = without_decay(3, "independent", 2, time=20)
    found = sliding_ls2t(**options, window=6, backend=backend)
    assert_close(found, one_by_one(options, 6), **EXACT)


def test_threads_change_nothing():
    options = without_decay(3, "recursive", 1, batch=3, time=500, width=20)
    one = sliding_ls2t(**options, window=40)
    torch.set_num_threads(2)
    try:
        assert torch.equal(sliding_ls2t(**options, window=40), one)
    finally:
        torch.set_num_threads(1)


def test_float32_and_half_precision(prepare):
    wide = without_decay(3, "recursive", 1, time=300)
    target = one_by_one(wide, 250, 10)
    for dtype, tolerance in [(torch.float32, 1e-5), (torch.float16, 1e-2)]:
        narrow = {k: v.to(dtype) if isinstance(v, torch.Tensor) else v for k, v in wide.items()}
        found = sliding_ls2t(**prepare(narrow), window=250, stride=10)
        assert found.dtype == torch.float32
        scale = target.abs().amax((0, 1, 3), keepdim=True)
        assert ((found - target).abs() / scale).max() < tolerance


def test_nan_stays_in_its_windows(prepare):
    options = without_decay(2, "recursive", 1, time=40)
    clean = sliding_ls2t(**options, window=7)
    options["x"][0, 20] = math.nan
    found = sliding_ls2t(**prepare(options), window=7)
    hit = torch.zeros(2, 34, dtype=torch.bool)
    hit[0, 14:21] = True
    assert torch.equal(found.isnan().all(-1).all(-1), hit)
    assert_close(found[~hit].detach(), clean[~hit], **EXACT)


def test_wrong_arguments():
    options = without_decay(2, "recursive", 1)
    with pytest.raises(ValueError, match=r"`window` must lie in 1..5 \(the time axis of `x`\), got 6"):
        sliding_ls2t(**options, window=6)
    with pytest.raises(ValueError, match="`window` must be at least 1, got 0"):
        sliding_ls2t(**options, window=[2, 0])
    with pytest.raises(TypeError, match="`window` must be an integer, got float"):
        sliding_ls2t(**options, window=[2.0])
    with pytest.raises(ValueError, match="`stride` must be at least 1, got 0"):
        sliding_ls2t(**options, window=2, stride=0)
