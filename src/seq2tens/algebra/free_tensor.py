"""Elements of the free algebra T(V), truncated above a fixed degree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from seq2tens._checks import floating, positive_int, require, shape
from seq2tens.algebra._levels import broadcast, check_levels, outer, prefix_products

Scalar = int | float | Tensor


@dataclass(frozen=True, eq=False, repr=False)
class FreeTensor:
    """A truncated element t = (t_0, …, t_M) of T(V), V = R^d, with any number of batch axes.

    `levels[m]` has shape `(*batch, d, …, d)` with m axes of size d; `levels[0]` is the scalar part.
    `s * t` is the convolution product, `(s·t)_m = Σ_i s_i ⊗ t_{m-i}`; a number or a tensor of batch shape
    acts as a scalar. Batch shapes broadcast. Coordinates are read by words: `t[(0, 1)]`, `t[()]`.
    """

    levels: tuple[Tensor, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))
        check_levels(self.levels)

    @property
    def order(self) -> int:
        """The highest degree; the element is truncated above it."""
        return len(self.levels) - 1

    @property
    def dim(self) -> int:
        """The dimension d of V."""
        return self.levels[1].shape[-1]

    @property
    def batch_shape(self) -> torch.Size:
        return self.levels[0].shape

    @property
    def dtype(self) -> torch.dtype:
        return self.levels[0].dtype

    @property
    def device(self) -> torch.device:
        return self.levels[0].device

    def __repr__(self) -> str:
        about = f"dim={self.dim}, order={self.order}, batch_shape={tuple(self.batch_shape)}"
        return f"FreeTensor({about}, dtype={self.dtype})"

    @classmethod
    def zero(
        cls,
        dim: int,
        order: int,
        batch_shape: Sequence[int] = (),
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> FreeTensor:
        """Return the element whose levels are all 0."""
        positive_int("dim", dim)
        positive_int("order", order)
        shapes = ((*batch_shape, *(dim,) * m) for m in range(order + 1))
        return cls(tuple(torch.zeros(size, dtype=dtype, device=device) for size in shapes))

    @classmethod
    def unit(
        cls,
        dim: int,
        order: int,
        batch_shape: Sequence[int] = (),
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> FreeTensor:
        """Return the neutral element of the product, (1, 0, 0, …)."""
        zero = cls.zero(dim, order, batch_shape, dtype=dtype, device=device)
        return zero._with_scalar(torch.ones_like(zero.levels[0]))

    @classmethod
    def from_vector(cls, vector: Float[Tensor, "*batch dim"], order: int) -> FreeTensor:
        """Return a vector v of V as the element (0, v, 0, …)."""
        floating("vector", vector)
        require(vector.dim() >= 1, "`vector` must have shape (*batch, dim), got a tensor without axes")
        return cls.pure(vector.unsqueeze(-2), order)

    @classmethod
    def pure(cls, vectors: Float[Tensor, "*batch degree dim"], order: int | None = None) -> FreeTensor:
        """Return the element that is z_1 ⊗ … ⊗ z_m in degree m and 0 in all others; `order` defaults to m."""
        prefixes = prefix_products(vectors)
        degree = len(prefixes) - 1
        order = degree if order is None else order
        positive_int("order", order)
        require(order >= degree, f"`order` must be at least the degree {degree} of `vectors`, got {order}")
        batch, dim = vectors.shape[:-2], vectors.shape[-1]
        zero = cls.zero(dim, order, batch, dtype=vectors.dtype, device=vectors.device)
        return cls((*zero.levels[:degree], prefixes[degree], *zero.levels[degree + 1 :]))

    @classmethod
    def rank_one(cls, vectors: Float[Tensor, "*batch order dim"]) -> FreeTensor:
        """Return the element with levels t_m = z_1 ⊗ … ⊗ z_m and t_0 = 1."""
        return cls(tuple(prefix_products(vectors)))

    @classmethod
    def low_rank(
        cls,
        vectors: Float[Tensor, "*batch rank order dim"],
        coefficients: Float[Tensor, "*batch rank"] | None = None,
    ) -> FreeTensor:
        """Return a linear combination of `rank_one` elements; coefficients default to 1."""
        floating("vectors", vectors)
        require(
            vectors.dim() >= 3,
            f"`vectors` must have shape (*batch, rank, order, dim), got {tuple(vectors.shape)}",
        )
        terms = cls.rank_one(vectors)
        if coefficients is not None:
            rank = vectors.shape[:-2]
            shape("coefficients", coefficients, tuple(rank), "(*batch, rank)")
            terms = terms * coefficients
        return cls(tuple(level.sum(dim=-1 - m) for m, level in enumerate(terms.levels)))

    @classmethod
    def unflatten(
        cls, flat: Float[Tensor, "*batch size"], dim: int, order: int, *, scalar: bool = True
    ) -> FreeTensor:
        """Undo `flatten`; with `scalar=False` the scalar part is set to 1."""
        floating("flat", flat)
        positive_int("dim", dim)
        positive_int("order", order)
        batch = flat.shape[:-1]
        sizes = [dim**m for m in range(0 if scalar else 1, order + 1)]
        shape("flat", flat, (*batch, sum(sizes)), "(*batch, d^m summed over the degrees)")
        head = () if scalar else (torch.ones(batch, dtype=flat.dtype, device=flat.device),)
        parts = flat.split(sizes, dim=-1)
        first = order + 1 - len(parts)
        levels = (part.reshape(batch + (dim,) * m) for m, part in enumerate(parts, first))
        return cls((*head, *levels))

    def __add__(self, other: FreeTensor) -> FreeTensor:
        if not isinstance(other, FreeTensor):
            return NotImplemented
        _check_pair(self, other)
        return FreeTensor(tuple(s + t for s, t in zip(self.levels, other.levels, strict=True)))

    def __neg__(self) -> FreeTensor:
        return self._map(torch.neg)

    def __sub__(self, other: FreeTensor) -> FreeTensor:
        return self + (-other) if isinstance(other, FreeTensor) else NotImplemented

    def __mul__(self, other: FreeTensor | Scalar) -> FreeTensor:
        if isinstance(other, FreeTensor):
            return _convolve(self, other)
        if not isinstance(other, Scalar):
            return NotImplemented
        return FreeTensor(tuple(level * c for level, c in self._broadcast_scalar(other)))

    def __rmul__(self, other: Scalar) -> FreeTensor:
        return self * other

    def __truediv__(self, other: Scalar) -> FreeTensor:
        if not isinstance(other, Scalar):
            return NotImplemented
        return FreeTensor(tuple(level / c for level, c in self._broadcast_scalar(other)))

    def __getitem__(self, word: tuple[int, ...]) -> Float[Tensor, "*batch"]:
        """Return the coordinate of a word, a tuple of letters 0..d-1; `()` is the scalar part."""
        if not isinstance(word, tuple):
            raise TypeError(f"`word` must be a tuple of letters such as (0, 1), got {word!r}")
        if len(word) > self.order:
            raise IndexError(f"`word` must have at most {self.order} letters (the order), got {word!r}")
        if not all(isinstance(letter, int) and 0 <= letter < self.dim for letter in word):
            raise IndexError(f"`word` must have letters in 0..{self.dim - 1}, got {word!r}")
        level = self.levels[len(word)]
        for letter in reversed(word):
            level = level.select(-1, letter)
        return level

    def inverse(self) -> FreeTensor:
        """Return the multiplicative inverse; not finite where the scalar part is 0."""
        nilpotent = (self / self.levels[0])._with_scalar(torch.zeros_like(self.levels[0]))
        return _series(nilpotent, [(-1.0) ** k for k in range(self.order + 1)]) / self.levels[0]

    def exp(self) -> FreeTensor:
        """Return Σ_k t^k / k!, exact in every degree up to the order."""
        nilpotent = self._with_scalar(torch.zeros_like(self.levels[0]))
        return (
            _series(nilpotent, [1 / math.factorial(k) for k in range(self.order + 1)]) * self.levels[0].exp()
        )

    def log(self) -> FreeTensor:
        """Return the inverse of `exp`; NaN where the scalar part is negative, as for torch.log."""
        nilpotent = (self / self.levels[0])._with_scalar(torch.zeros_like(self.levels[0]))
        series = _series(nilpotent, [0.0, *((-1.0) ** (k + 1) / k for k in range(1, self.order + 1))])
        return series._with_scalar(self.levels[0].log())

    def dilate(self, alpha: Scalar) -> FreeTensor:
        """Return the levels α^m t_m, the image under the algebra morphism that extends v → αv."""
        return FreeTensor(tuple(level * c**m for m, (level, c) in enumerate(self._broadcast_scalar(alpha))))

    def inner(self, other: FreeTensor) -> Float[Tensor, "*batch"]:
        """Return ⟨s, t⟩, the sum over all words of the products of coordinates."""
        _check_pair(self, other)
        return (self.flatten() * other.flatten()).sum(-1)

    def flatten(self, *, scalar: bool = True) -> Float[Tensor, "*batch size"]:
        """Return all coordinates along one axis, by degree, then lexicographically; t_0 only if `scalar`."""
        batch, dim = self.batch_shape, self.dim
        flat = [level.reshape((*batch, dim**m)) for m, level in enumerate(self.levels)]
        return torch.cat(flat if scalar else flat[1:], dim=-1)

    def truncate(self, order: int) -> FreeTensor:
        """Drop the degrees above `order`."""
        positive_int("order", order)
        require(order <= self.order, f"`order` must be at most {self.order}, the element's own, got {order}")
        return FreeTensor(self.levels[: order + 1])

    def to(self, *args: Any, **kwargs: Any) -> FreeTensor:
        """Move or cast every level, with the arguments of `torch.Tensor.to`."""
        return self._map(lambda level: level.to(*args, **kwargs))

    def detach(self) -> FreeTensor:
        """Detach every level from the autograd graph."""
        return self._map(torch.Tensor.detach)

    def _map(self, function: Callable[[Tensor], Tensor]) -> FreeTensor:
        return FreeTensor(tuple(map(function, self.levels)))

    def _with_scalar(self, scalar: Tensor) -> FreeTensor:
        return FreeTensor((scalar, *self.levels[1:]))

    def _broadcast_scalar(self, scalar: Scalar) -> list[tuple[Tensor, Scalar]]:
        """Return each level with the scalar, reshaped to broadcast against the batch axes."""
        if not isinstance(scalar, Tensor):
            return [(level, scalar) for level in self.levels]
        broadcast("a scalar factor", self.batch_shape, scalar.shape)
        # cast first: torch promotes tensors without axes by another rule than other tensors
        scalar = scalar.to(self.dtype)
        return [(level, scalar.reshape(scalar.shape + (1,) * m)) for m, level in enumerate(self.levels)]


def product(elements: Sequence[FreeTensor]) -> FreeTensor:
    """Return the product from left to right; for values of Φ it corresponds to concatenating sequences."""
    require(len(elements) > 0, "`elements` must hold at least one FreeTensor, got none")
    return reduce(_convolve, elements)


def _convolve(s: FreeTensor, t: FreeTensor) -> FreeTensor:
    _check_pair(s, t)
    levels = []
    for m in range(s.order + 1):
        terms = [outer(s.levels[i], t.levels[m - i], i, m - i) for i in range(m + 1)]
        levels.append(reduce(torch.add, terms))
    return FreeTensor(tuple(levels))


def _series(nilpotent: FreeTensor, coefficients: Sequence[float]) -> FreeTensor:
    """Return Σ_k c_k u^k by Horner's scheme; u has no scalar part, so powers above the order vanish."""
    u = nilpotent
    one = FreeTensor.unit(u.dim, u.order, dtype=u.dtype, device=u.device)
    total = one * coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = u * total + one * coefficient
    return total


def _check_pair(s: FreeTensor, t: FreeTensor) -> None:
    for name in ("dim", "order", "dtype"):
        left, right = getattr(s, name), getattr(t, name)
        require(left == right, f"both elements must have the same `{name}`, got {left} and {right}")
    broadcast("two elements", s.batch_shape, t.batch_shape)
