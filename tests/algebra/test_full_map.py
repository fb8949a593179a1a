"""Φ: Chen's identity, signatures, scaling, masks, gradients, and messages of errors."""

from __future__ import annotations

from itertools import combinations

import pysiglib
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from seq2tens.algebra import FreeTensor, PowerLift, lifts, seq2tens, signature

laws = settings(derandomize=True, deadline=None, max_examples=20)
seeds = st.integers(0, 2**31 - 1)
sizes = st.tuples(st.integers(1, 3), st.integers(0, 7), st.integers(1, 3))
orders = st.integers(1, 4)
LIFTS = {
    "linear": "linear",
    "1+x": "1+x",
    "exp": "exp",
    "exp 2": lifts.exponential(2),
    "coefficients": lifts.coefficients(torch.tensor([1.0, 0.3, -0.2], dtype=torch.float64)),
    "polynomial": lifts.polynomial(2),
    "callable": lambda x: [x.cos()],
}
any_lift = st.sampled_from(sorted(LIFTS)).map(LIFTS.__getitem__)


def normal(*size: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*size, generator=generator, dtype=torch.float64)


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def one_by_one(x: torch.Tensor, order: int, lift) -> FreeTensor:
    """Φ as the product over the steps of the levels that the lift returns."""
    total = None
    for i in range(x.shape[1]):
        levels = lift(x[:, i : i + 1])[:order]
        dim, batch = levels[0].shape[-1], x.shape[:1]
        zero = FreeTensor.zero(dim, order, batch, dtype=x.dtype).levels
        levels = [x.new_ones(batch), *(level.squeeze(1) for level in levels)]
        step = FreeTensor((*levels, *zero[len(levels) :]))
        total = step if total is None else total * step
    return total


@laws
@given(
    sizes.filter(lambda s: s[1] > 0), orders, any_lift.filter(lambda lift: not isinstance(lift, str)), seeds
)
def test_phi_is_the_product_of_lifted_steps(size, order, lift, seed):
    x = normal(*size, seed=seed)
    close(seq2tens(x, order, lift).flatten(), one_by_one(x, order, lift).flatten())


@laws
@given(sizes, orders, any_lift, st.integers(0, 7), seeds)
def test_chen(size, order, lift, cut, seed):
    x = normal(*size, seed=seed)
    parts = seq2tens(x[:, :cut], order, lift) * seq2tens(x[:, cut:], order, lift)
    close(parts.flatten(), seq2tens(x, order, lift).flatten())


@pytest.mark.parametrize("lift", LIFTS.values(), ids=LIFTS)
def test_the_empty_sequence_is_the_unit(lift):
    t = seq2tens(normal(2, 0, 3), 3, lift)
    assert torch.equal(t.flatten(), FreeTensor.unit(t.dim, 3, (2,), dtype=torch.float64).flatten())
    assert seq2tens(normal(2, 0, 3), 3, lift, return_sequences=True).batch_shape == (2, 0)


@laws
@given(sizes, orders, seeds)
def test_linear_lift_sums_over_increasing_indices(size, order, seed):
    x = normal(*size, seed=seed)
    t = seq2tens(x, order)
    for m in range(1, order + 1):
        expected = torch.zeros_like(t.levels[m])
        for indices in combinations(range(size[1]), m):
            expected = expected + FreeTensor.pure(x[:, list(indices)]).levels[m]
        close(t.levels[m], expected)


@laws
@given(sizes, orders, any_lift, seeds)
def test_sequences_hold_phi_of_every_beginning(size, order, lift, seed):
    x = normal(*size, seed=seed)
    path = seq2tens(x, order, lift, return_sequences=True)
    assert path.batch_shape == size[:2]
    for i in range(size[1]):
        close(path.flatten()[:, i], seq2tens(x[:, : i + 1], order, lift).flatten())


@laws
@given(sizes, orders, seeds, st.floats(-2, 2))
def test_scaling(size, order, seed, alpha):
    x = normal(*size, seed=seed)
    for lift in ("linear", "exp"):
        scaled, plain = seq2tens(alpha * x, order, lift), seq2tens(x, order, lift)
        for m in range(order + 1):
            close(scaled.levels[m], alpha**m * plain.levels[m])


@laws
@given(sizes, orders, seeds)
def test_repeated_observations_vanish_after_differencing(size, order, seed):
    batch, time, dim = size
    x = normal(batch, time + 2, dim, seed=seed)
    times = torch.randint(1, 4, (time + 2,), generator=torch.Generator().manual_seed(seed))
    warped = x.repeat_interleave(times, dim=1)
    for lift in ("linear", "exp"):
        close(
            seq2tens(warped.diff(dim=1), order, lift).flatten(),
            seq2tens(x.diff(dim=1), order, lift).flatten(),
        )


@laws
@given(sizes, st.integers(1, 5), seeds)
def test_exp_lift_is_the_signature(size, order, seed):
    batch, time, dim = size
    path = normal(batch, time + 2, dim, seed=seed)
    expected = pysiglib.sig(path, order, scalar_term=True)
    close(signature(path, order).flatten(), expected)


def test_signature_of_a_single_point_is_the_unit():
    t = signature(normal(2, 1, 3), 2)
    assert torch.equal(t.flatten(), FreeTensor.unit(3, 2, (2,), dtype=torch.float64).flatten())


def test_intermediate_p_interpolates():
    path = normal(2, 9, 2)
    full = signature(path, 4)
    for p in range(1, 5):
        cut = seq2tens(path.diff(dim=1), 4, lifts.exponential(p))
        exact = [
            torch.allclose(a, b, rtol=1e-10, atol=1e-10) for a, b in zip(cut.levels, full.levels, strict=True)
        ]
        assert exact == [True] * (p + 1) + [False] * (4 - p)


def smooth_path(points: int) -> torch.Tensor:
    t = torch.linspace(0, 1, points, dtype=torch.float64)
    return torch.stack([t.cos(), (3 * t).sin(), t.square()], dim=-1)[None]


def test_linear_lift_converges_to_the_signature_like_one_over_length():
    limit = pysiglib.sig(smooth_path(2**14 + 1).clone(), 3, scalar_term=True)
    lengths = torch.tensor([32.0, 64, 128, 256, 512], dtype=torch.float64)
    errors = [(seq2tens(smooth_path(int(n) + 1).diff(dim=1), 3).flatten() - limit).norm() for n in lengths]
    x, y = lengths.log(), torch.stack(errors).log()
    slope = ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()
    assert -1.15 < slope < -0.85


@pytest.mark.parametrize("lift", LIFTS.values(), ids=LIFTS)
@pytest.mark.parametrize("sequences", [False, True])
def test_padding_anywhere_changes_nothing(lift, sequences):
    x = normal(2, 5, 2)
    keep = torch.tensor([False, True, True, False, False, True, True, True, False])
    padded = torch.full((2, 9, 2), torch.nan, dtype=torch.float64)
    padded[:, keep] = x
    x.requires_grad_()
    padded.requires_grad_()
    mask = keep.expand(2, 9)
    plain = seq2tens(x, 3, lift, return_sequences=sequences).flatten()
    masked = seq2tens(padded, 3, lift, mask=mask, return_sequences=sequences).flatten()
    close(masked[:, keep] if sequences else masked, plain)
    plain.square().sum().backward()
    (masked[:, keep] if sequences else masked).square().sum().backward()
    close(padded.grad[:, keep], x.grad)
    assert not padded.grad[:, ~keep].any()


def test_lengths_cut_the_end_off():
    x, lengths = normal(3, 6, 2), torch.tensor([0, 4, 5])
    padded = x.clone()
    padded[0], padded[1, 4:], padded[2, 5:] = torch.nan, torch.inf, torch.nan
    ragged = seq2tens(padded, 3, "exp", lengths=lengths).flatten()
    for b, n in enumerate(lengths.tolist()):
        close(ragged[b], seq2tens(x[b : b + 1, :n], 3, "exp").flatten()[0])


def test_lengths_join_with_a_mask():
    x, lengths = normal(3, 6, 2), torch.tensor([0, 4, 6])
    mask = torch.ones(3, 6, dtype=torch.bool)
    mask[:, 1] = False
    joint = mask & (torch.arange(6) < lengths[:, None])
    both = seq2tens(x, 3, lengths=lengths, mask=mask)
    close(both.flatten(), seq2tens(x, 3, mask=joint).flatten())


def test_a_carried_state_stays_constant_over_masked_steps():
    x = normal(1, 4, 2)
    path = seq2tens(x, 2, mask=torch.tensor([[True, False, False, True]]), return_sequences=True).flatten()
    assert torch.equal(path[:, 0], path[:, 1])
    assert torch.equal(path[:, 1], path[:, 2])
    assert not torch.equal(path[:, 2], path[:, 3])


@pytest.mark.parametrize("lift", LIFTS.values(), ids=LIFTS)
@pytest.mark.parametrize("sequences", [False, True])
def test_gradients(lift, sequences):
    mask = torch.tensor([[True, True, False, True], [False, True, True, True]])

    def function(x):
        return seq2tens(x, 3, lift, mask=mask, return_sequences=sequences).flatten()

    assert gradcheck(function, normal(2, 4, 2).requires_grad_())


def test_gradients_of_coefficients():
    x, c = normal(2, 4, 2).requires_grad_(), normal(3, seed=1).requires_grad_()
    assert gradcheck(lambda x, c: seq2tens(x, 3, lifts.coefficients(c)).flatten(), (x, c))
    lift = PowerLift(torch.ones(2), learnable=True)
    seq2tens(x, 3, lift).flatten().sum().backward()
    (parameter,) = lift.parameters()
    assert parameter.grad.shape == (2,)
    assert parameter.grad.all()


def test_a_learnable_lift_does_not_share_its_initial_values():
    start = torch.ones(2)
    lift = PowerLift(start, learnable=True)
    with torch.no_grad():
        lift.coefficients.mul_(3)
    assert torch.equal(start, torch.ones(2))


def test_a_given_parameter_is_registered():
    c = torch.nn.Parameter(torch.ones(3))
    assert next(lifts.coefficients(c).parameters()) is c
    assert list(lifts.linear().parameters()) == []


def test_a_module_is_a_lift():
    layer = torch.nn.Linear(2, 4, dtype=torch.float64)

    class Net(torch.nn.Module):
        def forward(self, x):
            return [layer(x)]

    x = normal(2, 5, 2)
    close(seq2tens(x, 2, Net()).flatten(), seq2tens(layer(x), 2).flatten())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_accumulates_in_float32(dtype):
    x = torch.ones(1, 600, 1, dtype=dtype)
    t = seq2tens(x, 2)
    assert t.dtype == torch.float32
    assert t[(0,)].item() == 600
    # beyond the range of float16
    assert t[(0, 0)].item() == 600 * 599 / 2


def test_autocast_does_not_lower_the_precision():
    x = normal(2, 50, 3).float()
    plain = seq2tens(x, 3).flatten()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(seq2tens(x, 3).flatten(), plain)


def test_end_points_do_not_hold_on_to_paths():
    for backend in ("reference", "cpu"):
        element = seq2tens(normal(1, 500, 2), 3, backend=backend)
        assert {level.untyped_storage().nbytes() for level in element.levels} == {8 + 16 + 32 + 64}
    one_by_one = seq2tens(normal(1, 500, 2), 3, lambda x: [x])
    assert [level.untyped_storage().nbytes() for level in one_by_one.levels] == [8, 16, 32, 64]


def test_vmap_equals_batching():
    x = normal(3, 2, 5, 2)
    mapped = torch.func.vmap(lambda x: seq2tens(x, 3, "exp").flatten())(x)
    close(mapped.flatten(0, 1), seq2tens(x.flatten(0, 1), 3, "exp").flatten())


x = torch.ones(2, 4, 3)
ERRORS = [
    (lambda: seq2tens(x[0], 2), ValueError, r"`x` must have 3 axes .* got 2 with shape \(4, 3\)"),
    (lambda: seq2tens(x.long(), 2), TypeError, "`x` must have a floating-point dtype, got torch.int64"),
    (lambda: seq2tens(x, 0), ValueError, "`order` must be at least 1, got 0"),
    (lambda: seq2tens(x, 2.0), TypeError, "`order` must be an integer, got float"),
    (lambda: seq2tens(x[:0], 2), ValueError, r"`x` must hold at least one sequence.*\(0, 4, 3\)"),
    (lambda: seq2tens(x[..., :0], 2), ValueError, r"`x` must have at least one channel.*\(2, 4, 0\)"),
    (lambda: seq2tens(x, 2, mask=torch.ones(2, 5) > 0), ValueError, r"`mask`.*\(2, 4\), got \(2, 5\)"),
    (lambda: seq2tens(x, 2, mask=torch.ones(2, 4)), TypeError, "`mask` must be boolean.*torch.float32"),
    (
        lambda: seq2tens(x, 2, lengths=torch.tensor([1, 5])),
        ValueError,
        r"`lengths` must lie in 0..4.*got 5 at index 1",
    ),
    (lambda: seq2tens(x, 2, lengths=torch.tensor([-1, 2])), ValueError, "got -1 at index 0"),
    (
        lambda: seq2tens(x, 2, "cosine"),
        ValueError,
        "`lift` must be one of 'linear', '1.x', 'exp', got 'cosine'",
    ),
    (lambda: seq2tens(x, 2, 3), TypeError, "`lift` must be a name or a callable, got int"),
    (lambda: seq2tens(x, 2, lambda x: []), ValueError, "`lift` must return at least one level"),
    (
        lambda: seq2tens(x, 2, lambda x: [x[:, :, 0]]),
        ValueError,
        r"`lift\(x\)\[0\]` must have shape.*got \(2, 4\)",
    ),
    (
        lambda: seq2tens(x, 2, lambda x: [x, x]),
        ValueError,
        r"`lift\(x\)\[1\]`.*\(2, 4, 3, 3\), got \(2, 4, 3\)",
    ),
    (lambda: signature(x[:, :0], 2), ValueError, r"`path` must have at least one point.*\(2, 0, 3\)"),
    (lambda: lifts.exponential(0), ValueError, "`p` must be at least 1, got 0"),
    (lambda: lifts.polynomial(0), ValueError, "`degree` must be at least 1, got 0"),
    (lambda: lifts.coefficients(torch.ones(2, 2)), ValueError, r"`coefficients`.*\(p,\).*got \(2, 2\)"),
    (lambda: lifts.coefficients(torch.ones(0)), ValueError, r"`coefficients`.*p at least 1, got \(0,\)"),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS)
def test_errors_name_the_argument_and_the_value(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
