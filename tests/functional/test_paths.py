import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from seq2tens.functional import basepoint, difference, forward_fill, lags, lead_lag, time_embedding

EXACT = {"rtol": 1e-12, "atol": 1e-12}
SHAPES = {"time": st.integers(1, 7), "channels": st.integers(1, 3), "seed": st.integers(0, 10**6)}


def masked_pair(time, channels, seed):
    """A sequence, and the same one with steps put between that do not count and hold NaN."""
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(1, time, channels, generator=gen, dtype=torch.float64)
    mask = torch.zeros(1, 2 * time + 1, dtype=torch.bool)
    where = torch.randperm(2 * time + 1, generator=gen)[:time].sort().values
    mask[0, where] = True
    padded = torch.full((1, 2 * time + 1, channels), math.nan, dtype=torch.float64)
    padded[mask] = x[0]
    return x, padded, mask


@pytest.mark.parametrize(
    "transform",
    [
        difference,
        time_embedding,
        lambda x, **kw: time_embedding(x, mode="centred", **kw),
        lambda x, **kw: lags(x, 2, **kw),
        lambda x, **kw: lags(x, [3, 1], **kw),
    ],
)
@given(**SHAPES)
def test_masked_steps_are_as_if_absent(transform, time, channels, seed):
    x, padded, mask = masked_pair(time, channels, seed)
    assert_close(transform(padded, mask=mask)[mask], transform(x)[0], **EXACT)


@pytest.mark.parametrize("transform", [basepoint, lead_lag])
@given(**SHAPES)
def test_longer_paths_return_their_mask(transform, time, channels, seed):
    x, padded, mask = masked_pair(time, channels, seed)
    path, counted = transform(padded, mask=mask)
    assert_close(path[counted], transform(x)[0], **EXACT)


@given(**SHAPES)
def test_lengths_are_a_mask(time, channels, seed):
    x = torch.randn(2, time, channels, generator=torch.Generator().manual_seed(seed))
    lengths = torch.tensor([seed % (time + 1), time])
    mask = torch.arange(time) < lengths[:, None]
    assert_close(difference(x, lengths=lengths), difference(x, mask=mask))
    assert_close(lead_lag(x, lengths=lengths), lead_lag(x, mask=mask))


def test_difference_sums_back_and_masked_steps_are_zero():
    _, padded, mask = masked_pair(5, 2, 1)
    increments = difference(padded, mask=mask)
    assert (increments[~mask] == 0).all()
    assert_close(increments.cumsum(1)[mask], padded[mask], **EXACT)


def test_time_embedding_values():
    x = torch.zeros(2, 4, 1)
    assert_close(time_embedding(x)[0, :, 0], torch.tensor([0.25, 0.5, 0.75, 1.0]))
    assert_close(time_embedding(x, mode="centred")[0, :, 0], torch.tensor([-1, -1 / 3, 1 / 3, 1]))
    assert_close(
        time_embedding(x, lengths=torch.tensor([2, 0]))[..., 0], torch.tensor([[0.5, 1, 0, 0], [0.0] * 4])
    )
    times = torch.rand(2, 4)
    assert_close(time_embedding(x, times)[..., 0], times)
    assert time_embedding(x[:, :1], mode="centred")[0, 0, 0] == 0


def test_lags_and_lead_lag_values():
    x = torch.tensor([[[1.0], [2.0], [3.0]]])
    assert lags(x, 1)[0].tolist() == [[1, 0], [2, 1], [3, 2]]
    assert lags(x, [2])[0].tolist() == [[0], [0], [1]]
    assert lead_lag(x)[0].tolist() == [[1, 1], [2, 1], [2, 2], [3, 2], [3, 3]]
    assert basepoint(x)[0].tolist() == [[0], [1], [2], [3]]


@pytest.mark.parametrize("time", [1, 2, 3, 7, 8, 9, 40])
def test_forward_fill_step_by_step(time):
    torch.manual_seed(0)
    x = torch.randn(3, time, 4, dtype=torch.float64, requires_grad=True)
    observed, lengths = torch.rand(x.shape) < 0.2, torch.tensor([time, time // 2, 1])
    initial = torch.randn(4, dtype=torch.float64)
    last, steps = initial.expand(3, 4), []
    for step in range(time):
        counts = observed[:, step] & (step < lengths)[:, None]
        last = torch.where(counts, x[:, step], last)
        steps.append(last)
    expected, outer = torch.stack(steps, dim=1), torch.randn_like(x)
    found = forward_fill(x, observed=observed, lengths=lengths, initial=initial)
    assert torch.equal(found, expected)
    ours, theirs = (torch.autograd.grad(y, x, outer)[0] for y in (found, expected))
    assert_close(ours, theirs)


def test_forward_fill():
    nan = math.nan
    x = torch.tensor([[[nan, 1.0], [2.0, nan], [nan, nan], [4.0, 5.0]]])
    assert forward_fill(x)[0].tolist() == [[0, 1], [2, 1], [2, 1], [4, 5]]
    filled = forward_fill(x, initial=torch.tensor([7.0, 8.0]), lengths=torch.tensor([3]))
    assert filled[0].tolist() == [[7, 1], [2, 1], [2, 1], [2, 1]]
    observed = torch.tensor([[[True, True], [False, True], [True, True], [True, False]]])
    values = torch.arange(8.0).reshape(1, 4, 2)
    assert forward_fill(values, observed=observed)[0].tolist() == [[0, 1], [0, 3], [4, 5], [6, 5]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: lags(x, -1), "`steps` must be lags of at least 0, got -1"),
        (lambda x: lags(x, []), "`steps` must be lags of at least 0"),
        (
            lambda x: time_embedding(x, torch.zeros(3, 3)),
            r"`times` must have shape \(batch, time\) = \(2, 3\)",
        ),
        (
            lambda x: time_embedding(x, mode="seconds"),
            "`mode` must be one of 'index', 'centred', got 'seconds'",
        ),
        (lambda x: forward_fill(x, observed=torch.ones(2, 3, dtype=bool)), "`observed` must have shape"),
        (lambda x: difference(x[0]), "`x` must have 3 axes"),
        (lambda x: difference(x[:, :0]), "at least one time step"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call(torch.zeros(2, 3, 2))
