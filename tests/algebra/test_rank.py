"""What the paper says of Φ(x) as a tensor: its degree, its rank, and that it knows the sequence."""

from math import comb

import pytest
import torch

from seq2tens.algebra import lifts, seq2tens
from seq2tens.functional import ls2t

LENGTHS = range(1, 6)


def normal(*size: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def with_constant(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([torch.ones_like(x[..., :1]), x], dim=-1)


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def pascal(size: int) -> torch.Tensor:
    """The matrix of C(column, row), with 1 on its diagonal and 0 below."""
    rows = [[float(comb(j, a)) for j in range(size)] for a in range(size)]
    return torch.tensor(rows, dtype=torch.float64).reshape(size, size)


def recovered(x: torch.Tensor, order: int) -> torch.Tensor:
    """The steps, from the words 0…0k of Φ alone: ⟨e_0^a e_k, Φ(x)⟩ = Σ_j C(j, a) x_j[k], j = 0, 1, …"""
    phi = seq2tens(x, order)
    length = round(float(phi[(0,)]))
    assert length <= order
    words = [[float(phi[(0,) * a + (k,)]) for k in range(x.shape[2])] for a in range(length)]
    return torch.linalg.solve(pascal(length), torch.tensor(words, dtype=x.dtype).reshape(length, x.shape[2]))


@pytest.mark.parametrize("length", LENGTHS)
def test_the_degree_is_the_length(length):
    x = normal(2, length, 2)
    phi = seq2tens(x, length + 2)
    product = x[:, 0]
    for i in range(1, length):
        product = product[..., None] * x[:, i].reshape(2, *[1] * i, 2)
    close(phi.levels[length], product)  # x_1 ⊗ … ⊗ x_L, not 0 if no step is
    for m in (length + 1, length + 2):
        assert not phi.levels[m].any()


@pytest.mark.parametrize("p", [2, 3])
def test_a_lift_of_p_levels_multiplies_the_degree_by_p(p):
    phi = seq2tens(normal(1, 2, 2), 2 * p + 1, lifts.exponential(p))
    assert phi.levels[2 * p].any()
    assert not phi.levels[2 * p + 1].any()


@pytest.mark.parametrize("length", LENGTHS)
def test_the_rank_is_at_most_the_number_of_choices(length):
    """Every unfolding into a matrix has rank L - m + 1 if d allows it: that bounds the rank from below."""
    dim = 4
    phi = seq2tens(normal(1, length, dim), 4)
    for m in range(2, 5):
        for cut in range(1, m):
            rank = int(torch.linalg.matrix_rank(phi.levels[m].reshape(dim**cut, dim ** (m - cut))))
            assert rank == min(dim**cut, dim ** (m - cut), max(0, length - m + 1))
            assert rank <= comb(length, m)


def test_a_sequence_of_one_value_has_rank_one():
    v = normal(3)
    phi = seq2tens(v.expand(1, 6, 3), 3)
    for m in (2, 3):
        assert int(torch.linalg.matrix_rank(phi.levels[m].reshape(3, -1))) == 1
    close(phi.levels[2][0], comb(6, 2) * v[:, None] * v)


@pytest.mark.parametrize("length", [0, *LENGTHS])
def test_a_constant_coordinate_makes_phi_injective(length):
    x = with_constant(normal(1, length, 2, seed=length))
    close(recovered(x, 5), x[0])


def test_without_a_constant_coordinate_different_sequences_have_one_value():
    x = normal(1, 4, 2)
    zero = torch.zeros(1, 1, 2, dtype=torch.float64)
    longer = torch.cat([x[:, :2], zero, x[:, 2:]], dim=1)
    assert torch.equal(seq2tens(longer, 5).flatten(), seq2tens(x, 5).flatten())
    close(recovered(with_constant(longer), 5), with_constant(longer)[0])


def test_an_order_below_the_length_forgets():
    """Level 1 is L and the sum of the steps."""
    x = with_constant(normal(1, 3, 1))
    swapped = x[:, [1, 0, 2]]
    close(seq2tens(x, 1).flatten(), seq2tens(swapped, 1).flatten())
    assert not torch.allclose(seq2tens(x, 2).flatten(), seq2tens(swapped, 2).flatten())


def test_functionals_of_rank_one_are_enough_to_recover_a_sequence():
    """The words 0…0k are functionals of the layer: the bias of a vector of zeros is the constant."""
    x, length, dim = normal(2, 5, 2), 5, 2
    levels = []
    for k in range(dim):  # one functional for each place of the letter k: all other vectors are constants
        weight, bias = torch.zeros(length, dim, length).double(), torch.ones(length, length).double()
        for a in range(length):
            weight[a, k, a], bias[a, a] = 1.0, 0.0
        y = ls2t(x, weight, bias, order=length, return_sequences=False)
        levels.append(torch.stack([y[:, a, a] for a in range(length)], dim=1))
    close(torch.linalg.solve(pascal(length), torch.stack(levels, dim=-1)), x)
