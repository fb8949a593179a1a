"""Words: the quasi-shuffle algebra by itself, and as products of functionals on sequences."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from seq2tens.algebra import (
    FreeTensor,
    WordSum,
    evaluate,
    half_quasi_shuffle,
    lifts,
    monomials,
    quasi_shuffle,
    seq2tens,
    word,
)

laws = settings(derandomize=True, deadline=None, max_examples=40)
seeds = st.integers(0, 2**31 - 1)
letters = st.lists(st.integers(0, 1), min_size=1, max_size=2).map(tuple)
words = st.lists(letters, max_size=3).map(tuple)
non_empty = words.filter(len)
sums = st.dictionaries(words, st.integers(-3, 3), max_size=3).map(WordSum)
EMPTY = word()


def sequences(seed: int, time: int = 5, dim: int = 2) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(3, time, dim, generator=generator, dtype=torch.float64)


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def merged(a: WordSum, b: WordSum) -> WordSum:
    """The part of a ⋆ b whose last letter is made of both last letters."""
    total = WordSum({})
    for u, p in a.items():
        for v, q in b.items():
            if u and v:
                inner = quasi_shuffle(WordSum({u[:-1]: p}), WordSum({v[:-1]: q}))
                total += WordSum({(*w, u[-1] + v[-1]): c for w, c in inner.items()})
    return total


@laws
@given(sums, sums, sums)
def test_quasi_shuffle_is_a_commutative_algebra(a, b, c):
    assert quasi_shuffle(a, b) == quasi_shuffle(b, a)
    assert quasi_shuffle(quasi_shuffle(a, b), c) == quasi_shuffle(a, quasi_shuffle(b, c))
    assert quasi_shuffle(a + b, c) == quasi_shuffle(a, c) + quasi_shuffle(b, c)
    assert quasi_shuffle(a, EMPTY) == a


@laws
@given(non_empty, words)
def test_quasi_shuffle_splits_by_the_last_letter(u, v):
    a, b = word(*u), word(*v)
    halves = half_quasi_shuffle(a, b) + half_quasi_shuffle(b, a)
    assert quasi_shuffle(a, b) == halves + merged(a, b)


def test_small_products_by_hand():
    assert quasi_shuffle(word(0), word(1)) == word(0, 1) + word(1, 0) + word((0, 1))
    expected = word(0, 1, 2) + word(1, 0, 2) + word(1, 2, 0) + word((0, 1), 2) + word(1, (0, 2))
    assert quasi_shuffle(word(0), word(1, 2)) == expected
    assert half_quasi_shuffle(word(0), word(1, 2)) == word(0, 1, 2) + word(1, 0, 2) + word((0, 1), 2)
    assert half_quasi_shuffle(word(0), word(1)) == word(0, 1)


def test_the_empty_word_in_half_shuffles():
    assert half_quasi_shuffle(EMPTY, word(0, 1)) == word(0, 1)
    assert half_quasi_shuffle(word(0, 1), EMPTY) == WordSum({})


@laws
@given(sums, sums, seeds)
def test_products_of_functionals(a, b, seed):
    x = sequences(seed)
    close(evaluate(a, x) * evaluate(b, x), evaluate(quasi_shuffle(a, b), x))


@laws
@given(st.lists(st.integers(0, 1), max_size=3), st.lists(st.integers(0, 1), max_size=3), seeds)
def test_products_of_coordinates_of_phi(u, v, seed):
    x = sequences(seed)
    t = seq2tens(x, 3)
    close(t[tuple(u)] * t[tuple(v)], evaluate(quasi_shuffle(word(*u), word(*v)), x))


@laws
@given(non_empty, non_empty, seeds)
def test_half_shuffle_is_stacking(u, v, seed):
    x = sequences(seed)
    path = torch.stack([evaluate(word(*w), x, return_sequences=True) for w in (u, v)], dim=-1)
    increments = path.diff(dim=1, prepend=torch.zeros_like(path[:, :1]))
    close(seq2tens(increments, 2)[(0, 1)], evaluate(half_quasi_shuffle(word(*u), word(*v)), x))


def test_half_shuffle_is_stacking_of_the_full_map():
    x = sequences(7)
    path = seq2tens(x, 2, return_sequences=True).flatten()
    start = FreeTensor.unit(2, 2, (3, 1), dtype=torch.float64).flatten()
    stacked = seq2tens(path.diff(dim=1, prepend=start), 2).levels[2]
    coordinates = [(), (0,), (1,), (0, 0), (0, 1), (1, 0), (1, 1)]
    for i, u in enumerate(coordinates):
        for j, v in enumerate(coordinates):
            if u and v:
                close(stacked[:, i, j], evaluate(half_quasi_shuffle(word(*u), word(*v)), x))
            else:
                assert not stacked[:, i, j].any()


@laws
@given(words, seeds, st.integers(0, 5))
def test_evaluation_is_a_sum_over_increasing_indices(w, seed, time):
    x = sequences(seed, time)
    expected = torch.zeros(3, dtype=torch.float64)
    for indices in combinations(range(time), len(w)):
        term = torch.ones(3, dtype=torch.float64)
        for i, letter in zip(indices, w, strict=True):
            for channel in letter:
                term = term * x[:, i, channel]
        expected = expected + term
    close(evaluate(word(*w), x), expected)


def test_polynomial_lift_holds_the_iterated_sums():
    x = sequences(3)
    t, alphabet = seq2tens(x, 3, lifts.polynomial(2)), monomials(2, 2)
    assert alphabet == [(0,), (1,), (0, 0), (0, 1), (1, 1)]
    for w in [(), (3,), (0, 4), (2, 1, 3), (3, 3, 0)]:
        close(t[w], evaluate(word(*(alphabet[i] for i in w)), x))


def test_masks_and_beginnings():
    x, w = sequences(1), word(0, (0, 1)) * 2 - word(1) + word()
    mask = torch.tensor([True, False, True, True, False]).expand(3, 5)
    hidden = torch.where(mask[..., None], x, torch.nan)
    close(evaluate(w, hidden, mask=mask), evaluate(w, x[:, mask[0]]))
    close(evaluate(w, x, lengths=torch.tensor([0, 2, 5]))[1], evaluate(w, x[:, :2])[1])
    path = evaluate(w, x, return_sequences=True)
    for i in range(5):
        close(path[:, i], evaluate(w, x[:, : i + 1]))


def test_gradients():
    x = sequences(0, time=4).requires_grad_()
    assert gradcheck(lambda x: evaluate(word(0, (0, 1), 1) + word((1, 1, 0)), x), (x,))


@laws
@given(sums, sums)
def test_word_sums_are_a_vector_space(a, b):
    assert a + b == b + a
    assert (a + b) - b == a
    assert 2 * a - a == a
    assert a - a == WordSum({})
    assert hash(a + b) == hash(b + a)
    assert 0 not in (a + b).values()


def test_letters_are_commutative_monomials():
    assert word((1, 0)) == word((0, 1))
    assert word(0) == word((0,))
    assert word(0, 1) != word(1, 0)
    assert WordSum({((1, 0),): 1, ((0, 1),): 2}) == 3 * word((0, 1))


def test_repr():
    assert repr(word(1, (0, 2)) * 2 + word(0) - word()) == "WordSum(-1·∅ + e0 + 2·e1|e0e2)"
    assert repr(WordSum({})) == "WordSum(0)"


ERRORS = [
    (lambda: word(-1), ValueError, "each 0 or more, got -1"),
    (lambda: word(()), ValueError, r"non-empty tuple of channels, each 0 or more, got \(\)"),
    (lambda: evaluate(word(0, 2), torch.ones(1, 3, 2)), ValueError, r"channels 0..1 of `x`, got 2 in e0\|e2"),
    (lambda: evaluate(word(0), torch.ones(3, 2)), ValueError, "`x` must have 3 axes"),
    (lambda: word(0) + 1, TypeError, "unsupported operand"),
    (lambda: word(0) - 1, TypeError, "unsupported operand"),
    (lambda: word(0) * None, TypeError, "unsupported operand"),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS)
def test_errors_name_the_rule_and_the_value(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
