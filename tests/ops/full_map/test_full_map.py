"""The fused full map against the reference: values, derivatives, and how it sits in torch."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from comparison import named
from seq2tens.algebra import PowerLift, lifts, seq2tens, signature
from seq2tens.ops.full_map import cpu as fused
from seq2tens.ops.full_map import reference

# batch, time, dim, order: the three ways through the kernels
SHAPES = {"lanes": (9, 70, 3, 3), "single": (2, 40, 3, 3), "products": (3, 70, 16, 3)}
CLOSE = {torch.float64: {"rtol": 1e-10, "atol": 1e-10}, torch.float32: {"rtol": 1e-4, "atol": 1e-4}}


def problem(batch, time, dim, p, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(batch, time, dim, generator=generator, dtype=torch.float64) / math.sqrt(time + 1)
    c = torch.rand(p, generator=generator, dtype=torch.float64) + 0.2
    return x.to(dtype).requires_grad_(), c.to(dtype).requires_grad_()


def assert_same(x, c, order, sequences, increments=False):
    found = fused.full_map(x, c, order, sequences, increments)
    expected = reference.full_map(x, c, order, sequences, increments)
    tolerance = CLOSE[x.dtype]
    assert_close(found, expected, **tolerance)
    weights = torch.linspace(-1, 1, found.numel(), dtype=x.dtype).reshape(found.shape)
    for name, a, b in zip(
        ("x", "coefficients"),
        torch.autograd.grad(found, (x, c), weights),
        torch.autograd.grad(expected, (x, c), weights),
        strict=True,
    ):
        # sums over many coordinates cancel, so the error is measured against the largest entry
        largest = max(1.0, float(b.abs().max())) if b.numel() else 1.0
        assert_close(a / largest, b / largest, **tolerance, msg=lambda m, name=name: f"{name}: {m}")


@settings(max_examples=60)
@given(
    batch=st.integers(1, 40),
    time=st.integers(1, 70),
    dim=st.integers(1, 5),
    order=st.integers(1, 4),
    data=st.data(),
)
def test_equals_the_reference(batch, time, dim, order, data):
    p = data.draw(st.integers(1, order), label="p")
    dtype = data.draw(st.sampled_from([torch.float64, torch.float32]), label="dtype")
    sequences, increments = data.draw(st.booleans(), label="sequences"), data.draw(st.booleans())
    assert_same(*problem(batch, time + increments, dim, p, dtype), order, sequences, increments)


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("increments", [False, True])
@pytest.mark.parametrize(
    ("dim", "order", "p"), [(16, 3, 3), (16, 3, 1), (4, 6, 6), (4, 6, 2), (5, 6, 9), (64, 2, 2)]
)
def test_large_top_levels_equal_the_reference(dim, order, p, increments, dtype):
    assert_same(*problem(3, 40, dim, p, dtype), order, False, increments)


@pytest.mark.parametrize("time", [0, 1, 31, 32, 33, 64, 65])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_lengths_around_blocks(shape, time):
    batch, _, dim, order = shape
    for increments in (False, True):
        assert_same(*problem(batch, time + increments, dim, order), order, False, increments)


def test_an_empty_time_axis_is_the_unit():
    for backend in ("reference", "cpu"):
        t = seq2tens(torch.zeros(9, 0, 3), 3, "exp", backend=backend).flatten()
        assert torch.equal(t, torch.eye(1, 40).expand(9, 40))
        assert seq2tens(torch.zeros(2, 0, 3), 2, return_sequences=True, backend=backend).batch_shape == (2, 0)


@pytest.mark.parametrize("sequences", [False, True])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_masked_steps_may_hold_nan(shape, sequences):
    batch, time, dim, order = shape
    x, _ = problem(batch, time, dim, order)
    mask = torch.rand(batch, time, generator=torch.Generator().manual_seed(1)) < 0.6
    dirty = torch.where(mask[..., None], x.detach(), math.nan).requires_grad_()
    options = {"mask": mask, "return_sequences": sequences}
    found = seq2tens(dirty, order, "exp", backend="cpu", **options).flatten()
    expected = seq2tens(x, order, "exp", backend="reference", **options).flatten()
    assert_close(found, expected, **CLOSE[torch.float64])
    found.square().sum().backward()
    expected.square().sum().backward()
    assert_close(dirty.grad, x.grad, rtol=1e-9, atol=1e-9)
    assert not dirty.grad[~mask].any()


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_no_memory_is_read_before_it_is_written(shape):
    batch, time, dim, order = shape
    before = torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    try:
        assert torch.empty(1).isnan()
        for sequences in (False, True):
            for increments in (False, True):
                assert_same(*problem(batch, time, dim, order), order, sequences, increments)
    finally:
        torch.use_deterministic_algorithms(False)
        torch.utils.deterministic.fill_uninitialized_memory = before


def results(shape, dtype):
    batch, time, dim, order = shape
    x, c = problem(batch, time, dim, order, dtype)
    y = fused.full_map(x, c, order, False)
    return y, *torch.autograd.grad(y.square().sum(), (x, c))


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("shape", [(37, 600, 4, 3), (37, 80, 16, 3), (3, 300, 8, 4)])
def test_bits_do_not_depend_on_threads(shape, dtype):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = results(shape, dtype)
        torch.set_num_threads(2)
        assert all(torch.equal(a, b) for a, b in zip(alone, results(shape, dtype), strict=True))
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("sequences", [False, True])
@pytest.mark.parametrize("increments", [False, True])
@pytest.mark.parametrize(("batch", "dim", "order", "p"), [(4, 2, 3, 3), (1, 2, 3, 2), (1, 16, 3, 3)])
def test_first_and_second_derivatives(batch, dim, order, p, increments, sequences):
    x, c = problem(batch, 4, dim, p)

    def function(x, c):
        return fused.full_map(x, c, order, sequences, increments)

    assert torch.autograd.gradcheck(function, (x, c), fast_mode=True)
    assert torch.autograd.gradgradcheck(function, (x, c), fast_mode=True)


def test_gradients_of_one_input_alone():
    x, c = problem(5, 6, 2, 2)
    y = fused.full_map(x, c.detach(), 3, False).sum()
    assert_close(torch.autograd.grad(y, x), torch.autograd.grad(fused.full_map(x, c, 3, False).sum(), x))
    y = fused.full_map(x.detach(), c, 3, False).sum()
    assert_close(torch.autograd.grad(y, c), torch.autograd.grad(fused.full_map(x, c, 3, False).sum(), c))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_operations_obey_torch(shape):
    batch, _, dim, order = shape
    x, c = problem(batch, 5, dim, order)
    for sequences in (False, True):
        torch.library.opcheck(torch.ops.seq2tens.full_map.default, (x, c, order, sequences, True, True))
        y, checkpoints = torch.ops.seq2tens.full_map(x, c, order, sequences, False, True)
        arguments = (torch.ones_like(y), checkpoints, x, c, order, sequences, False, True)
        torch.library.opcheck(
            torch.ops.seq2tens.full_map_backward.default, tuple(
                a.detach() if isinstance(a, torch.Tensor) else a for a in arguments
            )
        )  # fmt: skip


def test_it_compiles_as_one_graph():
    x, c = problem(9, 12, 3, 2)

    def function(x, c):
        return fused.full_map(2 * x, c, 3, False).square().sum()

    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    assert_close(compiled(x, c), function(x, c))
    first, second = (named("dx dc", torch.autograd.grad(f(x, c), (x, c))) for f in (compiled, function))
    assert_close(first, second)


def test_the_public_function_compiles_as_one_graph():
    x, _ = problem(9, 12, 3, 2)
    compiled = torch.compile(lambda x: seq2tens(x, 3, "exp").flatten(), fullgraph=True, backend="aot_eager")
    assert_close(compiled(x), seq2tens(x, 3, "exp").flatten())


def test_levels_are_views_of_what_flatten_returns():
    t = signature(torch.randn(3, 7, 2), 3)
    flat = t.flatten()
    assert flat is t.flatten()
    assert all(level.untyped_storage().data_ptr() == flat.untyped_storage().data_ptr() for level in t.levels)
    assert torch.equal(flat[:, 1:], t.flatten(scalar=False))
    assert torch.equal(flat, torch.cat([level.reshape(3, -1) for level in t.levels], dim=1))
    assert (t.order, t.dim, t.batch_shape) == (3, 2, (3,))
    assert_close((t * t.inverse()).flatten(), torch.eye(1, 15).expand(3, 15), rtol=1e-4, atol=1e-4)


def test_transforms_and_forward_mode_take_the_reference():
    x = torch.randn(3, 4, 5, 2, dtype=torch.float64)
    mapped = torch.func.vmap(lambda x: signature(x, 3).flatten())(x)
    assert_close(mapped.flatten(0, 1), signature(x.flatten(0, 1), 3).flatten())
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x[0], torch.ones_like(x[0]))
        assert torch.autograd.forward_ad.unpack_dual(seq2tens(dual, 2).flatten()).tangent is not None


class Doubled(PowerLift):
    def forward(self, x):
        return super().forward(2 * x)


def test_a_backend_that_cannot_run_says_why():
    x = torch.randn(2, 5, 3)
    for lift in (lifts.polynomial(2), Doubled(torch.ones(2)), lambda x: [x]):
        seq2tens(x, 2, lift)
        with pytest.raises(RuntimeError, match="`backend` 'cpu' cannot run here: `lift` is not a PowerLift"):
            seq2tens(x, 2, lift, backend="cpu")
    with pytest.raises(RuntimeError, match=r"cannot run here: it has no rules for torch\.func"):
        torch.func.vmap(lambda x: signature(x[None], 2, backend="cpu").flatten())(x)
    with pytest.raises(RuntimeError, match="cannot run here: a tensor is on meta"):
        seq2tens(x.to("meta"), 2, backend="cpu")
    for function in (seq2tens, signature):
        with pytest.raises(ValueError, match=r"`backend` must be one of .*, got 'gpu'"):
            function(x, 2, backend="gpu")


def test_a_subclass_keeps_its_own_forward():
    x = torch.randn(2, 5, 3)
    assert_close(
        seq2tens(x, 2, Doubled(torch.ones(2))).flatten(),
        seq2tens(2 * x, 2, PowerLift(torch.ones(2))).flatten(),
    )


@pytest.mark.parametrize(("dim", "order"), [(3, 3), (16, 3)])
def test_float32_sums_stay_accurate(dim, order):
    """A hundred thousand steps with a drift, so that plain float32 sums would lose digits."""
    generator = torch.Generator().manual_seed(0)
    x = (torch.rand(4, 100_000, dim, generator=generator) / 1000).requires_grad_()
    wide = x.detach().double().requires_grad_()
    y, expected = (seq2tens(steps, order, "exp").flatten() for steps in (x, wide))
    assert ((y - expected).abs() / expected.abs()).max() < 1e-5
    (dx,) = torch.autograd.grad(y.sum(), x)
    (expected,) = torch.autograd.grad(expected.sum(), wide)
    assert ((dx - expected).abs() / expected.abs()).max() < 1e-5
