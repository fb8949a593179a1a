"""Gaussian processes as priors of latent paths, factorised once for all sequences of a length."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2tens import _checks as check
from seq2tens.models.gpvae.recurrence import trace_of_product

Kernel = Literal["cauchy", "rbf", "matern12", "matern32", "matern52", "independent"]

LatentPath = Float[Tensor, "*batch time latent"]
Lengths = Int[Tensor, " batch"]

LARGEST_MEMORY = 2**25  # maximum number of elements of the cached precision matrices of a prior
_CORRELATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "cauchy": lambda d: 1 / (1 + d**2),
    "rbf": lambda d: torch.exp(-(d**2) / 2),
    "matern12": lambda d: torch.exp(-d),
    "matern32": lambda d: (1 + math.sqrt(3) * d) * torch.exp(-math.sqrt(3) * d),
    "matern52": lambda d: (1 + math.sqrt(5) * d + 5 * d**2 / 3) * torch.exp(-math.sqrt(5) * d),
    "independent": lambda d: (d == 0).to(d.dtype),
}
_MARKOV = ("matern12", "independent")


@dataclass(frozen=True)
class Prior:
    """Independent Gaussian processes over time with mean 0, one for each latent dimension.

    Args:
        kernel: a function of the distance d in length scales: `"cauchy"` 1/(1 + d²), `"rbf"` exp(-d²/2),
            `"matern12"` exp(-d), `"matern32"`, `"matern52"`, or `"independent"`, for independent steps.
        length_scale: length scale of the first group of latent dimensions.
        scale: variance, the factor of the kernel.
        jitter: number added to the variance of each step. By default 1e-3, without which most kernels cannot
            be factorised, and 0 for `"matern12"` and `"independent"`, whose precision is then banded.
        n_scales: number of groups of about equal size into which the latent dimensions are split, each with
            half the length scale of the one before.
    """

    kernel: Kernel = "cauchy"
    length_scale: float = 2.0
    scale: float = 1.0
    jitter: float | None = None
    n_scales: int = 1

    def __post_init__(self) -> None:
        check.choice("kernel", self.kernel, get_args(Kernel))
        for name, value in [("length_scale", self.length_scale), ("scale", self.scale)]:
            check.require(
                0 < value < math.inf, f"`{name}` must be a finite number greater than 0, got {value}"
            )
        check.require(
            self.jitter is None or 0 <= self.jitter < math.inf,
            f"`jitter` must be a finite number of at least 0, got {self.jitter}",
        )
        check.positive_int("n_scales", self.n_scales)

    @property
    def noise(self) -> float:
        """The jitter, with its default filled in."""
        return (0.0 if self.kernel in _MARKOV else 1e-3) if self.jitter is None else float(self.jitter)

    def covariance(self, times: int | Float[Tensor, " time"]) -> Float[Tensor, "scales time time"]:
        """Return the covariance of each group of latent dimensions at the times, or at 0, …, times - 1."""
        distance = (points := _as_times(times))[:, None].sub(points).abs()
        correlation = _CORRELATIONS[self.kernel]
        scaled = torch.stack([correlation(distance / length) for length in self._length_scales()])
        return self.scale * scaled + self.noise * torch.eye(len(points), dtype=points.dtype)

    def at(
        self,
        times: int | Float[Tensor, " time"],
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> Factor:
        """Factorise the prior at the given increasing times, or at 0, …, times - 1, in double precision.

        If `times` is a number of steps, the factor is cached.
        """
        dtype, chosen_device = dtype or torch.get_default_dtype(), torch.device(device or "cpu")
        if isinstance(times, Tensor):
            return self._factorize(times, dtype, chosen_device)
        check.positive_int("times", times)
        return _cached_factor(self, times, dtype, chosen_device)

    def _factorize(
        self, times: int | Float[Tensor, " time"], dtype: torch.dtype, device: torch.device
    ) -> Factor:
        if self.kernel in _MARKOV and self.noise == 0:
            return BandedFactor(*self._markov_bands(_as_times(times)), dtype, device)
        covariance = self.covariance(times)
        lower, info = torch.linalg.cholesky_ex(covariance)
        check.require(
            not bool(info.any()),
            f"`jitter` must be large enough for a covariance of {covariance.shape[-1]} steps to be positive "
            f"definite, got {self.noise:g} for kernel {self.kernel!r}",
        )
        eye = torch.eye(lower.shape[-1], dtype=lower.dtype)
        return DenseFactor(torch.linalg.solve_triangular(lower, eye, upper=False), dtype, device)

    def _length_scales(self) -> list[float]:
        return [self.length_scale / 2**i for i in range(self.n_scales)]

    def _markov_bands(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return the bands of the map from z to ε, where each step is φ z + √(σ(1 - φ²)) ε for the last z."""
        lengths = torch.tensor(self._length_scales(), dtype=points.dtype)
        elapsed = points.diff() / lengths[:, None]
        independent = self.kernel == "independent"
        before = torch.zeros_like(elapsed) if independent else torch.exp(-elapsed)
        left = torch.ones_like(elapsed) if independent else -torch.expm1(-2 * elapsed)
        first = points.new_full((self.n_scales, 1), self.scale)
        diagonal = torch.cat([first, self.scale * left], dim=1).rsqrt()
        return diagonal, -before * diagonal[:, 1:]


class Factor:
    """The inverse W of the Cholesky factor of a prior's covariance: W z is white noise.

    W is lower triangular, and its leading blocks are those of shorter sequences: one factor serves all
    lengths. It is created by `Prior.at`.
    """

    time: int
    n_scales: int
    _log_determinants: Float[Tensor, "scales lengths"]

    def _keep_log_determinants(
        self, diagonal: Float[Tensor, "scales time"], dtype: torch.dtype, device: torch.device
    ) -> None:
        of_lengths = torch.nn.functional.pad(-2 * diagonal.log().cumsum(1), (1, 0))
        self._log_determinants = of_lengths.to(device, dtype)

    def groups(self, latent: int) -> list[slice]:
        """Return the latent dimensions that belong to each length scale."""
        edges = [latent * i // self.n_scales for i in range(self.n_scales + 1)]
        return [slice(a, b) for a, b in pairwise(edges)]

    def log_determinant(self, latent: int, lengths: Lengths) -> Float[Tensor, "batch latent"]:
        """Return the log-determinant of the covariance of the first `lengths` steps."""
        of_scales = self._log_determinants[:, lengths]
        return self._per_latent(of_scales, latent).mT

    def whiten(self, path: LatentPath) -> LatentPath:
        """Return W z, each latent dimension with its own W."""
        raise NotImplementedError

    def trace(
        self, variance: LatentPath, ratio: LatentPath, lengths: Lengths
    ) -> Float[Tensor, "batch latent"]:
        """Return tr(K⁻¹A) over the leading steps, with A_ij = A_jj r_i ⋯ r_{j-1} for i < j."""
        raise NotImplementedError

    def _per_latent(self, of_scales: Tensor, latent: int) -> Tensor:
        sizes = [group.stop - group.start for group in self.groups(latent)]
        return of_scales.repeat_interleave(torch.tensor(sizes, device=of_scales.device), dim=0)


class BandedFactor(Factor):
    """Factor of a Markov prior: W is lower bidiagonal, and all operations take O(L)."""

    def __init__(
        self,
        diagonal: Float[Tensor, "scales time"],
        below: Float[Tensor, "scales time-1"],
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.n_scales, self.time = diagonal.shape
        self._diagonal, self._below = diagonal.to(device, dtype), below.to(device, dtype)
        self._keep_log_determinants(diagonal, dtype, device)

    def whiten(self, path: LatentPath) -> LatentPath:
        """Return W z, each latent dimension with its own W."""
        diagonal, below = self._bands(path.shape[-1])
        before = torch.nn.functional.pad(below * path[..., :-1, :], (0, 0, 1, 0))
        return diagonal * path + before

    def trace(
        self, variance: LatentPath, ratio: LatentPath, lengths: Lengths
    ) -> Float[Tensor, "batch latent"]:
        """Return tr(K⁻¹A) over the leading steps: the sum of the variances of W z."""
        diagonal, below = self._bands(variance.shape[-1])
        later = variance[..., 1:, :]
        mixed = 2 * diagonal[1:] * below * ratio[..., :-1, :] * later + below**2 * variance[..., :-1, :]
        white = diagonal**2 * variance + torch.nn.functional.pad(mixed, (0, 0, 1, 0))
        inside = torch.arange(self.time, device=variance.device) < lengths[:, None]
        return torch.where(inside[..., None], white, 0.0).sum(-2)

    def _bands(self, latent: int) -> tuple[Tensor, Tensor]:
        return self._per_latent(self._diagonal, latent).mT, self._per_latent(self._below, latent).mT


class DenseFactor(Factor):
    """Factor of any other prior: W is a triangular matrix, and K⁻¹ is cached for the lengths that occur."""

    def __init__(
        self, inverse: Float[Tensor, "scales time time"], dtype: torch.dtype, device: torch.device
    ) -> None:
        self.n_scales, self.time = inverse.shape[:2]
        self._exact, self._inverse = inverse, inverse.to(device, dtype)
        self._precisions: OrderedDict[int, Tensor] = OrderedDict()
        self._keep_log_determinants(inverse.diagonal(dim1=1, dim2=2), dtype, device)

    def whiten(self, path: LatentPath) -> LatentPath:
        """Return W z, each latent dimension with its own W."""
        groups = self.groups(path.shape[-1])
        return torch.cat([self._inverse[i] @ path[..., group] for i, group in enumerate(groups)], dim=-1)

    def trace(
        self, variance: LatentPath, ratio: LatentPath, lengths: Lengths
    ) -> Float[Tensor, "batch latent"]:
        """Return tr(K⁻¹A) over the leading steps, for all sequences of a length at once."""
        present = lengths.unique().tolist()
        if len(present) == 1:
            return self._trace(variance, ratio, present[0])
        total = torch.zeros_like(variance[:, 0])
        for length in present:
            rows = (lengths == length).nonzero().squeeze(1)
            total = total.index_copy(0, rows, self._trace(variance[rows], ratio[rows], length))
        return total

    def _trace(self, variance: Tensor, ratio: Tensor, length: int) -> Tensor:
        if length == 0:
            return torch.zeros_like(variance[:, 0])
        precision, groups = self._precision(length), self.groups(variance.shape[-1])
        variance, ratio = variance[:, :length], ratio[:, :length]
        traces = [
            trace_of_product(precision[i], variance[..., group], ratio[..., group])
            for i, group in enumerate(groups)
        ]
        return torch.cat(traces, dim=-1)

    def _precision(self, length: int) -> Float[Tensor, "scales length length"]:
        """Return K⁻¹ = WᵀW of the first `length` steps, cached; the least recently used are evicted."""
        if length not in self._precisions:
            leading = self._exact[:, :length, :length]
            self._precisions[length] = (leading.mT @ leading).to(self._inverse)
            while len(self._precisions) > 1 and self._size() > LARGEST_MEMORY:
                self._precisions.popitem(last=False)
        self._precisions.move_to_end(length)
        return self._precisions[length]

    def _size(self) -> int:
        return sum(matrix.numel() for matrix in self._precisions.values())


@lru_cache(maxsize=16)
def _cached_factor(prior: Prior, time: int, dtype: torch.dtype, device: torch.device) -> Factor:
    return prior._factorize(time, dtype, device)


def _as_times(times: int | Float[Tensor, " time"]) -> Float[Tensor, " time"]:
    if not isinstance(times, Tensor):
        return torch.arange(times, dtype=torch.float64)
    points = times.detach().to("cpu", torch.float64)
    check.require(
        points.dim() == 1 and len(points) > 0,
        f"`times` must have one axis with at least one time, got shape {tuple(times.shape)}",
    )
    increasing = bool((points.diff() > 0).all() & points.isfinite().all())
    check.require(increasing, "`times` must be finite and increase from each step to the next")
    return points
