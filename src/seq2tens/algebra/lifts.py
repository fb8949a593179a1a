"""Lifts φ: V → T(V). A lift maps steps x `(…, d)` to the levels 1..p of φ(x); level 0 is always 1.

Any callable or `nn.Module` with that signature is a lift: it returns a list of tensors of shapes
`(…, e)`, `(…, e, e)`, …, where e may differ from d.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2tens._checks import floating, positive_int, require

Lift = Callable[[Tensor], Sequence[Tensor]]


class PowerLift(nn.Module):
    """The lift φ(x) = 1 + c_1 x + c_2 x⊗x + … + c_p x^{⊗p}, with `coefficients` c of shape `(p,)`.

    Gradients flow to coefficients that require them. An `nn.Parameter` is registered as it is;
    `learnable=True` makes one from a copy of the values.
    """

    coefficients: Tensor

    def __init__(self, coefficients: Float[Tensor, " p"], *, learnable: bool = False) -> None:
        super().__init__()
        floating("coefficients", coefficients)
        require(
            coefficients.dim() == 1 and coefficients.shape[0] >= 1,
            f"`coefficients` must have shape (p,) with p at least 1, got {tuple(coefficients.shape)}",
        )
        if learnable:
            coefficients = nn.Parameter(coefficients.detach().clone())
        if isinstance(coefficients, nn.Parameter):
            self.coefficients = coefficients
        else:
            self.register_buffer("coefficients", coefficients)

    def forward(self, x: Float[Tensor, "*batch dim"]) -> list[Tensor]:
        weights = self.coefficients.to(device=x.device, dtype=x.dtype).unbind()
        powers = [x]
        for k in range(1, len(weights)):
            last = powers[-1].unsqueeze(-1)
            powers.append(last * x.reshape(x.shape[:-1] + (1,) * k + x.shape[-1:]))
        return [weight * power for weight, power in zip(weights, powers, strict=True)]

    def extra_repr(self) -> str:
        return f"p={self.coefficients.shape[0]}, learnable={self.coefficients.requires_grad}"


class PolynomialLift(nn.Module):
    """The lift φ(x) = 1 + all monomials of degree 1..degree in the coordinates of x.

    Φ then holds iterated sums.
    """

    def __init__(self, degree: int) -> None:
        super().__init__()
        positive_int("degree", degree)
        self.degree = degree

    def forward(self, x: Float[Tensor, "*batch dim"]) -> list[Tensor]:
        columns = [x[..., list(monomial)].prod(-1) for monomial in monomials(x.shape[-1], self.degree)]
        return [torch.stack(columns, dim=-1)]

    def extra_repr(self) -> str:
        return f"degree={self.degree}"


def linear() -> PowerLift:
    """Return φ(x) = 1 + x, the lift of the paper."""
    return exponential(1)


def exponential(p: int) -> PowerLift:
    """Return φ(x) = exp(x) up to degree p; if p is the order, Φ of increments is the signature."""
    positive_int("p", p)
    return PowerLift(inverse_factorials(p))


def inverse_factorials(p: int) -> Float[Tensor, " p"]:
    """Return 1/k! for k = 1, …, p, the coefficients of exp."""
    return torch.tensor([1 / math.factorial(k) for k in range(1, p + 1)], dtype=torch.float64)


def coefficients(c: Float[Tensor, " p"]) -> PowerLift:
    """Return φ(x) = 1 + Σ_k c_k x^{⊗k}; gradients flow to c."""
    return PowerLift(c)


def polynomial(degree: int) -> PolynomialLift:
    """Return φ(x) = 1 + all monomials up to `degree`, in the order of `monomials`."""
    return PolynomialLift(degree)


def monomials(dim: int, degree: int) -> list[tuple[int, ...]]:
    """Return the monomials of degree 1..degree in `dim` variables, as sorted tuples of variable indices."""
    positive_int("dim", dim)
    positive_int("degree", degree)
    return [m for k in range(1, degree + 1) for m in combinations_with_replacement(range(dim), k)]
