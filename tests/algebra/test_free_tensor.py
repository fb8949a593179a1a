"""T(V): the algebra's laws on random elements, gradients, and messages of errors."""

from __future__ import annotations

import copy
from itertools import product as index_tuples

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from seq2tens.algebra import FreeTensor, product

laws = settings(derandomize=True, deadline=None, max_examples=25)
shapes = st.tuples(st.integers(1, 3), st.integers(1, 4), st.sampled_from([(), (2,), (2, 3)]))
seeds = st.integers(0, 2**31 - 1)


def normal(*size: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*size, generator=generator, dtype=torch.float64)


def element(shape: tuple, seed: int, *, scalar: float | None = None) -> FreeTensor:
    dim, order, batch = shape
    size = sum(dim**m for m in range(order + 1))
    flat = normal(*batch, size, seed=seed)
    if scalar is not None:
        flat[..., 0] = scalar
    return FreeTensor.unflatten(flat, dim, order)


def unit_like(t: FreeTensor) -> FreeTensor:
    return FreeTensor.unit(t.dim, t.order, t.batch_shape, dtype=t.dtype)


def assert_same(s: FreeTensor, t: FreeTensor) -> None:
    assert s.order == t.order
    torch.testing.assert_close(s.flatten(), t.flatten(), rtol=1e-10, atol=1e-10)


@laws
@given(shapes, seeds)
def test_the_product_is_the_sum_over_splittings_of_words(shape, seed):
    s, t = element(shape, seed), element(shape, seed + 1)
    both = s * t
    for m in range(s.order + 1):
        for word in index_tuples(range(s.dim), repeat=m):
            expected = sum(s[word[:i]] * t[word[i:]] for i in range(m + 1))
            torch.testing.assert_close(both[word], expected, rtol=1e-10, atol=1e-10)


@laws
@given(shapes, seeds)
def test_associative_distributive_and_unital(shape, seed):
    r, s, t = (element(shape, seed + k) for k in range(3))
    assert_same((r * s) * t, r * (s * t))
    assert_same(r * (s + t), r * s + r * t)
    assert_same((r - s) * t, r * t - s * t)
    assert_same(r * unit_like(r), r)
    assert_same(unit_like(r) * r, r)
    assert_same(product([r, s, t]), r * s * t)


@laws
@given(shapes, seeds, st.sampled_from([1.0, -2.0, 0.5]))
def test_inverse_on_both_sides(shape, seed, scalar):
    t = element(shape, seed, scalar=scalar)
    assert_same(t * t.inverse(), unit_like(t))
    assert_same(t.inverse() * t, unit_like(t))


@laws
@given(shapes, seeds, st.sampled_from([0.0, -0.7, 1.3]))
def test_exp_and_log_undo_each_other(shape, seed, scalar):
    t = element(shape, seed, scalar=scalar)
    assert_same(t.exp().log(), t)
    positive = element(shape, seed, scalar=0.8)
    assert_same(positive.log().exp(), positive)
    assert_same((-t).exp(), t.exp().inverse())


def test_exp_is_its_power_series():
    t = element((2, 3, ()), 5, scalar=0.0)
    one = unit_like(t)
    assert_same(t.exp(), one + t + t * t / 2 + t * t * t / 6)
    assert_same((one + t).log(), t - t * t / 2 + t * t * t / 3)


@laws
@given(shapes, seeds)
def test_exp_of_a_sum_when_the_summands_commute(shape, seed):
    a = element(shape, seed, scalar=0.2)
    b = a * a - a * 0.5
    assert_same((a + b).exp(), a.exp() * b.exp())


def test_exp_of_a_sum_when_they_do_not():
    a, b = (FreeTensor.from_vector(v, 2) for v in torch.eye(2, dtype=torch.float64))
    gap = a.exp() * b.exp() - (a + b).exp()
    # Baker-Campbell-Hausdorff: half the commutator is what remains in degree 2
    assert_same(gap, (a * b - b * a) / 2)
    assert gap[(0, 1)] == 0.5


@laws
@given(shapes, seeds, st.floats(-2, 2))
def test_dilation_is_a_morphism(shape, seed, alpha):
    s, t = element(shape, seed), element(shape, seed + 1)
    assert_same((s * t).dilate(alpha), s.dilate(alpha) * t.dilate(alpha))
    assert_same((s + t).dilate(alpha), s.dilate(alpha) + t.dilate(alpha))
    v = normal(shape[0], seed=seed)
    assert_same(FreeTensor.from_vector(v, 3).dilate(alpha), FreeTensor.from_vector(alpha * v, 3))


@laws
@given(shapes, seeds)
def test_rank_one_pairs_word_by_word(shape, seed):
    dim, order, batch = shape
    t, z = element(shape, seed), normal(*batch, order, dim, seed=seed + 1)
    expected = torch.zeros(batch, dtype=torch.float64)
    for m in range(order + 1):
        for word in index_tuples(range(dim), repeat=m):
            factors = [z[..., k, letter] for k, letter in enumerate(word)]
            expected = expected + t[word] * torch.stack([torch.ones(batch).double(), *factors]).prod(0)
    torch.testing.assert_close(FreeTensor.rank_one(z).inner(t), expected, rtol=1e-10, atol=1e-10)


@laws
@given(shapes, seeds)
def test_low_rank_and_pure_are_built_from_rank_one(shape, seed):
    dim, order, batch = shape
    z, c = normal(*batch, 3, order, dim, seed=seed), normal(*batch, 3, seed=seed + 1)
    parts = [FreeTensor.rank_one(z[..., k, :, :]) for k in range(3)]
    assert_same(FreeTensor.low_rank(z), parts[0] + parts[1] + parts[2])
    weighted = parts[0] * c[..., 0] + parts[1] * c[..., 1] + parts[2] * c[..., 2]
    assert_same(FreeTensor.low_rank(z, c), weighted)
    vectors = [FreeTensor.from_vector(v, order) for v in z[..., 0, :, :].unbind(-2)]
    assert_same(FreeTensor.pure(z[..., 0, :, :]), product(vectors))


def test_pure_lives_in_one_degree():
    z = normal(2, 3)
    t = FreeTensor.pure(z, order=4)
    assert [bool(level.any()) for level in t.levels] == [False, False, True, False, False]
    torch.testing.assert_close(t.levels[2], torch.outer(z[0], z[1]))


@laws
@given(shapes, seeds)
def test_flatten_and_back(shape, seed):
    t = element(shape, seed)
    again = FreeTensor.unflatten(t.flatten(scalar=False), t.dim, t.order, scalar=False)
    assert torch.equal(again.flatten(scalar=False), t.flatten(scalar=False))
    assert torch.equal(again[()], torch.ones(t.batch_shape, dtype=torch.float64))
    assert torch.equal(t.flatten()[..., 0], t[()])
    assert torch.equal(t.flatten()[..., t.dim], t[(t.dim - 1,)])


def test_scalars_from_both_sides():
    t, c = element((2, 3, (4,)), 0), normal(4, seed=1)
    assert_same(2 * t, t + t)
    assert_same(np.float64(2) * t, t + t)
    assert_same(c * t, t * c)
    assert_same((t * c) / c, t)
    torch.testing.assert_close((c * t)[(0, 1, 1)], c * t[(0, 1, 1)])
    torch.testing.assert_close(t.dilate(c)[(0, 1, 1)], c**3 * t[(0, 1, 1)])


def test_batch_shapes_broadcast():
    s, t = element((2, 3, (3, 1)), 0), element((2, 3, (4,)), 1)
    for joint in (s * t, s + t, s - t):
        assert joint.batch_shape == (3, 4)
    assert (normal(3, 1) * t).batch_shape == (3, 4)
    assert s.inner(t).shape == (3, 4)
    one = FreeTensor(tuple(level[2, 0] for level in s.levels)) * FreeTensor(
        tuple(level[1] for level in t.levels)
    )
    assert_same(FreeTensor(tuple(level[2, 1] for level in (s * t).levels)), one)


def test_mixed_precision_scalars_keep_the_dtype_of_the_element():
    t = element((2, 2, (3,)), 0).to(torch.float32)
    assert (t * torch.tensor(2.0, dtype=torch.float64)).dtype == torch.float32


def test_truncation_commutes_with_the_product():
    s, t = element((2, 4, ()), 0), element((2, 4, ()), 1)
    assert_same((s * t).truncate(2), s.truncate(2) * t.truncate(2))


def test_zero_and_empty_batches():
    t = element((2, 3, (2,)), 0)
    assert_same(t + FreeTensor.zero(2, 3, dtype=torch.float64), t)
    empty = FreeTensor.unit(2, 3, (0,), dtype=torch.float64)
    assert empty.exp().flatten().shape == (0, 15)


OPERATIONS = {
    "add": lambda s, t: s + t,
    "sub": lambda s, t: s - t,
    "neg": lambda s, t: -s,
    "product": lambda s, t: s * t,
    "scalar": lambda s, t: s * t[()],
    "divide": lambda s, t: s / t[()],
    "inverse": lambda s, t: s.inverse(),
    "exp": lambda s, t: s.exp(),
    "log": lambda s, t: s.log(),
    "dilate": lambda s, t: s.dilate(t[()]),
    "truncate": lambda s, t: s.truncate(2),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_gradients(name):
    s, t = element((2, 3, (2,)), 0, scalar=1.2), element((2, 3, (2,)), 1, scalar=0.7)

    def function(*levels):
        return OPERATIONS[name](FreeTensor(levels[:4]), FreeTensor(levels[4:])).flatten()

    assert gradcheck(function, [level.clone().requires_grad_() for level in (*s.levels, *t.levels)])


def test_gradients_of_constructors_and_inner():
    z, c = normal(2, 3, 2, 2).requires_grad_(), normal(2, 3).requires_grad_()
    t = element((2, 2, (2,)), 1)
    assert gradcheck(lambda z, c: FreeTensor.low_rank(z, c).inner(t), (z, c))
    assert gradcheck(lambda z: FreeTensor.pure(z, 3).flatten(), (z,))
    assert gradcheck(lambda z: FreeTensor.from_vector(z, 2).exp()[(1, 0)], (z,))


def test_vmap_equals_batching():
    flat = element((2, 3, (5,)), 0, scalar=1.5).flatten()

    def function(row):
        t = FreeTensor.unflatten(row, 2, 3)
        return (t.log().exp() * t.inverse() + t.dilate(0.5)).flatten()

    torch.testing.assert_close(torch.func.vmap(function)(flat), function(flat), rtol=1e-10, atol=1e-10)


def test_detach_to_copy_and_repr():
    t = element((2, 2, (3,)), 0)
    leaf = FreeTensor(tuple(level.requires_grad_() for level in t.levels))
    assert not leaf.detach().flatten().requires_grad
    assert leaf.to(torch.float32).dtype == torch.float32
    assert_same(copy.deepcopy(t.detach()), t)
    assert repr(t) == "FreeTensor(dim=2, order=2, batch_shape=(3,), dtype=torch.float64)"
    with pytest.raises(AttributeError):
        t.levels = ()


ones = torch.ones
ERRORS = [
    (lambda t: FreeTensor((ones(2),)), ValueError, r"`levels` must hold at least degrees 0 and 1, got 1"),
    (lambda t: FreeTensor((ones(2), ones(3))), ValueError, r"`levels\[1\]` must have shape .* got \(3,\)"),
    (
        lambda t: FreeTensor((ones(()), ones(3), ones(3, 2))),
        ValueError,
        r"`levels\[2\]`.*\(3, 3\), got \(3, 2\)",
    ),
    (
        lambda t: FreeTensor((ones(()), ones(3).long())),
        TypeError,
        r"`levels\[1\]` must have a floating-point",
    ),
    (lambda t: FreeTensor((ones(()), ones(3).double())), ValueError, "one dtype and device"),
    (lambda t: t * FreeTensor.unit(3, 2), ValueError, "same `dim`, got 2 and 3"),
    (lambda t: t + FreeTensor.unit(2, 3), ValueError, "same `order`, got 2 and 3"),
    (lambda t: t - FreeTensor.unit(2, 2, dtype=torch.float64), ValueError, "same `dtype`"),
    (lambda t: t.inner(FreeTensor.unit(2, 2, (5,))), ValueError, r"must broadcast, got \(4,\) and \(5,\)"),
    (lambda t: t * ones(5), ValueError, r"must broadcast, got \(4,\) and \(5,\)"),
    (lambda t: t * None, TypeError, "unsupported operand"),
    (lambda t: t + 1, TypeError, "unsupported operand"),
    (lambda t: t - 1, TypeError, "unsupported operand"),
    (lambda t: t / t, TypeError, "unsupported operand"),
    (lambda t: t[0], TypeError, r"`word` must be a tuple of letters such as \(0, 1\), got 0"),
    (lambda t: t[(0, 0, 0)], IndexError, r"at most 2 letters \(the order\), got \(0, 0, 0\)"),
    (lambda t: t[(0, 2)], IndexError, r"letters in 0..1, got \(0, 2\)"),
    (lambda t: t[(-1,)], IndexError, r"letters in 0..1, got \(-1,\)"),
    (lambda t: t.truncate(3), ValueError, "`order` must be at most 2.*got 3"),
    (lambda t: t.truncate(0), ValueError, "`order` must be at least 1, got 0"),
    (lambda t: FreeTensor.unit(2, 0), ValueError, "`order` must be at least 1, got 0"),
    (lambda t: FreeTensor.pure(ones(3, 2), 2), ValueError, "at least the degree 3 of `vectors`, got 2"),
    (lambda t: FreeTensor.from_vector(ones(()), 2), ValueError, "`vector` must have shape"),
    (lambda t: FreeTensor.rank_one(ones(3)), ValueError, r"\(\*batch, order, dim\).*got \(3,\)"),
    (lambda t: FreeTensor.low_rank(ones(3, 2)), ValueError, r"\(\*batch, rank, order, dim\), got \(3, 2\)"),
    (
        lambda t: FreeTensor.low_rank(ones(3, 2, 2), ones(2)),
        ValueError,
        r"`coefficients`.*\(3,\), got \(2,\)",
    ),
    (lambda t: FreeTensor.unflatten(ones(6), 2, 2), ValueError, r"`flat`.*\(7,\), got \(6,\)"),
    (lambda t: product([]), ValueError, "`elements` must hold at least one"),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS)
def test_errors_name_the_argument_and_the_value(call, kind, message):
    with pytest.raises(kind, match=message):
        call(FreeTensor.unit(2, 2, (4,)))
