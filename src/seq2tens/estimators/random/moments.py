"""The normal equations of ridge regression as sums over rows, which can be added, removed and merged exactly.

A row is (1, features), so the sums of weights, of features and of their products form one matrix. Apart from
it, little is stored: with p features it takes 8·(p + 1)² bytes, 1.06 GB for the 11,520 of 40 blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2tens import _checks as check

PANEL = 2048  # columns of a panel of the matrix of second moments
# Conjugate gradient steps with the last factor before a new one is computed, and their error tolerance.
STEPS, ERROR = 16, 1e-13

Table = Float[Tensor, "rows features"]
Targets = Float[Tensor, "rows targets"]
RowWeights = Float[Tensor, " rows"]


@dataclass
class Moments:
    """Σ w·rrᵀ (blocks of columns on and below the diagonal) and Σ w·ryᵀ over rows r with targets y.

    Products are computed in the type of the rows: float64 for rows that may be removed again.
    """

    second: Float[Tensor, "1+features 1+features"]
    joint: Float[Tensor, "1+features targets"]
    rows: int = 0

    @classmethod
    def zeros(cls, features: int, targets: int) -> Moments:
        """Return the moments of no rows."""
        side = 1 + features
        return cls(
            torch.zeros(side, side, dtype=torch.float64), torch.zeros(side, targets, dtype=torch.float64)
        )

    def add(self, table: Table, targets: Targets, weights: RowWeights) -> None:
        """Add these rows."""
        rows = with_ones(table)
        weighted = rows * weights.to(rows.dtype)[:, None]
        self.joint += weighted.T @ targets.to(rows.dtype)
        for start, stop in panels(len(self.second)):
            add_product(self.second[start:, start:stop], weighted[:, start:].T, rows[:, start:stop])
        self.rows += len(table)

    def subtract(self, table: Table, targets: Targets, weights: RowWeights) -> None:
        """Remove rows that were added with the same weights."""
        self.add(table, targets, -weights)
        self.rows -= 2 * len(table)

    def check_removable(self, rows: int) -> None:
        """Raise an error unless there are more rows than this."""
        check.require(
            rows <= self.rows, f"`X` must be among the {self.rows} sequences that were learned, got {rows}"
        )
        check.require(rows < self.rows, f"`X` must leave a sequence that was learned, got all {rows}")

    def merge(self, other: Moments) -> None:
        """Add the rows of other moments."""
        self.second += other.second
        self.joint += other.joint
        self.rows += other.rows

    def rearrange(self, places: list[int], targets: int) -> None:
        """Move target k to `places[k]` among `targets`; the others are 0 in all rows so far."""
        joint = torch.zeros(len(self.joint), targets, dtype=torch.float64)
        joint[:, places] = self.joint
        self.joint = joint

    def recoded(self, scale: Float[Tensor, " targets"], shift: Float[Tensor, " targets"]) -> Moments:
        """Return the moments for targets times a scale, plus a shift."""
        return replace(self, joint=self.joint * scale + self.second[:, :1] * shift)

    def times(self, vectors: Float[Tensor, "1+features k"]) -> Float[Tensor, "1+features k"]:
        """Multiply vectors by the symmetric matrix, of which only some blocks are stored."""
        lines = vectors.T.contiguous()  # rows in this order: BLAS is several times as fast
        product = torch.zeros_like(lines)
        for start, stop in panels(len(self.second)):
            product[:, start:] += lines[:, start:stop] @ self.second[start:, start:stop].T
            product[:, start:stop] += lines[:, stop:] @ self.second[stop:, start:stop]
        return product.T


@dataclass
class NormalEquations:
    """Solves (Σ w·rrᵀ + penalty) x = Σ w·ryᵀ, with the intercept not penalised.

    The Cholesky factor of an earlier state preconditions conjugate gradients for a later one, which take at
    most as many steps as rows were added or removed. Errors do not accumulate: the current equations are
    solved each time.
    """

    penalty: float  # factor of each squared coefficient
    factor: Float[Tensor, "1+features 1+features"] | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the factor, which is large and computed again when needed."""
        return {"penalty": self.penalty, "factor": None}

    def solve(self, moments: Moments) -> Float[Tensor, "1+features targets"]:
        """Return the solution: intercepts in the first row, then coefficients."""
        check.require(moments.rows > 0, "the sums must hold at least one sequence, got none")
        if self.factor is not None:
            solution, error = self._iterate(moments, self.factor)
            if error <= ERROR:
                return solution
        self.factor = None  # frees its memory first
        self.factor = self._factorize(moments)
        return self._iterate(moments, self.factor)[0]

    def held_out(
        self, moments: Moments, table: Table, targets: Targets, folds: Int[np.ndarray, " rows"]
    ) -> Targets:
        """Predict rows that were added with weight 1 from all rows but those of their fold.

        The errors for rows R of a fold are their residuals times the inverse of
        1 - R (Σ w·rrᵀ + penalty)⁻¹ Rᵀ.
        """
        self.factor = None
        solution = self.solve(moments)
        assert self.factor is not None  # the factor of these moments
        rows = with_ones(table)
        half = torch.linalg.solve_triangular(self.factor, rows.T.contiguous(), upper=False)
        residuals = targets - rows @ solution
        for fold in np.unique(folds):
            inside = torch.from_numpy(np.flatnonzero(folds == fold))
            part = half[:, inside]
            residuals[inside] = torch.linalg.solve(
                torch.eye(len(inside), dtype=part.dtype) - part.T @ part, residuals[inside]
            )
        return targets - residuals

    def _factorize(self, moments: Moments) -> Tensor:
        diagonal = moments.second.diagonal()
        before = diagonal.clone()
        diagonal[1:] += self.penalty
        try:
            return torch.linalg.cholesky(moments.second)  # reads the lower triangle only
        finally:
            diagonal.copy_(before)

    def _iterate(self, moments: Moments, factor: Tensor) -> tuple[Tensor, float]:
        """Run conjugate gradients for all targets at once; return the solution and its relative error."""
        solution = torch.zeros_like(moments.joint)
        residual = moments.joint.clone()
        direction = preconditioned = solve_factor(factor, residual)
        size = initial = (residual * preconditioned).sum(dim=0)
        for _ in range(STEPS):
            image = moments.times(direction)
            image[1:] += self.penalty * direction[1:]
            step = size / (direction * image).sum(dim=0).clamp(min=tiny(size))
            solution += step * direction
            residual = residual - step * image
            preconditioned = solve_factor(factor, residual)
            before, size = size, (residual * preconditioned).sum(dim=0)
            if largest_ratio(size, initial) <= ERROR**2:
                break
            direction = preconditioned + size / before.clamp(min=tiny(size)) * direction
        return solution, largest_ratio(size, initial) ** 0.5


def with_ones(table: Table) -> Float[Tensor, "rows 1+features"]:
    """Prepend a column of ones."""
    return torch.cat([table.new_ones(len(table), 1), table], dim=1)


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add a matrix product, in place if the types allow it."""
    if left.dtype == total.dtype:
        total.addmm_(left, right)
    else:
        total += left @ right


def largest_ratio(size: Tensor, initial: Tensor) -> float:
    """Return the largest ratio; it is 0 for a target that is 0."""
    return float((size.abs() / initial.clamp(min=tiny(initial))).max())


def tiny(like: Tensor) -> float:
    """Return the smallest normal number of the type, to divide by in place of 0."""
    return torch.finfo(like.dtype).tiny


def solve_factor(lower: Tensor, right: Tensor) -> Tensor:
    """Solve a system given its lower Cholesky factor; unlike torch's function, without copying the factor."""
    half = torch.linalg.solve_triangular(lower, right, upper=False)
    return torch.linalg.solve_triangular(lower.mT, half, upper=True)


def panels(width: int) -> list[tuple[int, int]]:
    """Return the column ranges of the panels."""
    return [(start, min(start + PANEL, width)) for start in range(0, width, PANEL)]
