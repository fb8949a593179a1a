"""Ridge regression for many features: a penalty by leave-one-out, and tables too long for memory.

What it would predict for rows it has not seen is told by folds of neighbouring rows that are left out
together: neighbours often come from one recording, and a row left out alone would be told by them.

The features are standardised, so one penalty suits all; it is counted per feature, so that it means the same
whatever their number. Where there are more than `SAMPLE` rows, statistics and penalty come from a sample of
them: a penalty is the ratio of two variances, of noise and of coefficients, which rows do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2tens import _checks as check
from seq2tens.estimators.random.moments import Moments, NormalEquations, RowWeights, Table, Targets

PENALTIES = tuple(10.0 ** (k / 3) for k in range(-12, 10))
SAMPLE = 2048  # rows for leave-one-out
BATCH = 2048  # rows of a longer table at a time
FOLDS = 10
LIMIT = 10.0  # standard deviations; what is further out than any training row could be says no more

# Features of the rows with these numbers.
Source = Callable[[Int[np.ndarray, " chosen"]], Table]
Strata = Int[np.ndarray, " rows"]


@dataclass
class Ridge:
    """A fitted linear map of features, and what was found on the way."""

    mean: Float[Tensor, " features"]
    scale: Float[Tensor, " features"]
    coefficients: Float[Tensor, "features targets"]
    intercept: Float[Tensor, " targets"]
    penalty: float
    # Predictions of the rows of the sample by models without their fold, and their numbers; not saved.
    held_out: Float[Tensor, "sample targets"] | None = None
    sample: Int[np.ndarray, " sample"] | None = None

    def __call__(self, table: Table) -> Targets:
        """Predictions; the table is overwritten."""
        return standardise(table, self.mean, self.scale) @ self.coefficients + self.intercept

    def tensors(self) -> dict[str, Tensor]:
        """What `from_tensors` needs."""
        names = ("mean", "scale", "coefficients", "intercept")
        tensors = {name: getattr(self, name) for name in names}
        return {**tensors, "penalty": torch.tensor(self.penalty, dtype=torch.float64)}

    @classmethod
    def from_tensors(cls, tensors: dict[str, Any]) -> Ridge:
        """The map whose `tensors()` these are."""
        return cls(**{**tensors, "penalty": float(tensors["penalty"])})


def fit_ridge(
    source: Source,
    targets: Targets,
    weights: RowWeights,
    rng: np.random.Generator,
    penalties: tuple[float, ...] = PENALTIES,
    strata: Strata | None = None,
) -> Ridge:
    """Learn targets from features, of which never more than a few thousand rows are held in memory.

    Each of the strata, classes for instance, is cut into folds by itself.
    """
    n = len(targets)
    rows = np.arange(n) if n <= SAMPLE else np.sort(rng.permutation(n)[:SAMPLE])
    table = source(rows)
    mean, scale = statistics(table, weights[rows])
    standardise(table, mean, scale)
    folds = neighbours(np.zeros(n, dtype=int)[rows] if strata is None else strata[rows])
    penalty, dual, held_out = choose_penalty(table, targets[rows], weights[rows], folds, penalties)
    if n <= SAMPLE:
        coefficients, intercept = from_dual(table, dual, targets, weights)
    else:
        del table, dual
        solve = solve_by_rows if n <= len(mean) else solve_by_columns
        coefficients, intercept = solve(
            lambda rows: standardise(source(rows), mean, scale), len(mean), targets, weights, penalty
        )
    return Ridge(mean, scale, coefficients, intercept, penalty, held_out, rows)


def statistics(table: Table, weights: RowWeights) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of every column; infinite, so that it counts for nothing, if constant."""
    share = (weights / weights.sum()).float()
    mean = share @ table
    variance = torch.zeros_like(mean)
    for rows in torch.arange(len(table)).split(256):
        variance += share[rows] @ (table[rows] - mean).square()
    scale = variance.sqrt()
    # float32 leaves a trace of its rounding in the deviation of a constant
    return mean, torch.where(scale > 1e-5 * mean.abs().clamp(min=1e-2), scale, torch.inf)


def standardise(table: Table, mean: Tensor, scale: Tensor) -> Table:
    """In place; values beyond the limit become the limit."""
    return table.sub_(mean).div_(scale).clamp_(-LIMIT, LIMIT)


def neighbours(strata: Strata) -> Strata:
    """The fold of each row: stretches of each of the strata, in the order of the rows."""
    folds = np.empty_like(strata)
    for number, stratum in enumerate(np.unique(strata)):
        rows = np.flatnonzero(strata == stratum)
        # single rows not all in one fold, or nothing might be left
        folds[rows] = np.arange(len(rows)) * FOLDS // len(rows) if len(rows) > 1 else number % FOLDS
    return folds


def choose_penalty(
    table: Table, targets: Targets, weights: RowWeights, folds: Strata, penalties: tuple[float, ...]
) -> tuple[float, Tensor, Targets]:
    """The penalty with the least squared error of rows left out in turn; its dual solution; predictions.

    Those are of rows whose whole fold is left out.
    """
    spectrum = Spectrum.of(table, targets, weights)
    errors = [float(spectrum.left_out(penalty).square().sum()) for penalty in penalties]
    penalty = penalties[int(np.argmin(errors))]
    root = spectrum.root
    missed = spectrum.folds_left_out(penalty, folds) / root.clamp(min=1e-12)
    return penalty, spectrum.dual(penalty) * root, (targets - missed).float()


@dataclass(frozen=True)
class Spectrum:
    """K = Q diag(e) Qᵀ of the rows, times the roots of their weights, and QᵀY for as many targets.

    The intercept is not penalised: its direction gets an eigenvalue that leaves nothing of it.
    """

    values: Float[Tensor, " rows"]
    vectors: Float[Tensor, "rows rows"]
    rotated: Float[Tensor, "rows targets"]
    root: Float[Tensor, "rows 1"]

    @classmethod
    def of(cls, table: Table, targets: Targets, weights: RowWeights) -> Spectrum:
        """From features."""
        root = weights.double().sqrt()[:, None]
        gram = centred_gram(table, weights)
        direction = root / root.norm()
        free = 1e6 * gram.diagonal().max().clamp(min=1.0)
        values, vectors = torch.linalg.eigh(gram * root * root.T + free * direction @ direction.T)
        centred = targets.double() - weighted_mean(targets.double(), weights)
        return cls(values.clamp(min=0), vectors, vectors.T @ (centred * root), root)

    def dual(self, penalty: float) -> Float[Tensor, "rows targets"]:
        """(K + λ)⁻¹Y."""
        return self.vectors @ (self.rotated / (self.values + penalty)[:, None])

    def left_out(self, penalty: float) -> Float[Tensor, "rows targets"]:
        """By how much a row is missed without it: its part of (K + λ)⁻¹Y over the diagonal of (K + λ)⁻¹."""
        diagonal = self.vectors.square() @ (1 / (self.values + penalty))
        return self.dual(penalty) / diagonal[:, None]

    def folds_left_out(self, penalty: float, folds: Strata) -> Float[Tensor, "rows targets"]:
        """The same without all rows of its fold: a block of (K + λ)⁻¹ in place of an entry."""
        missed = self.dual(penalty)
        for fold in np.unique(folds):
            rows = torch.from_numpy(np.flatnonzero(folds == fold))
            vectors = self.vectors[rows]
            missed[rows] = torch.linalg.solve((vectors / (self.values + penalty)) @ vectors.T, missed[rows])
        return missed


def centred_gram(table: Table, weights: RowWeights) -> Float[Tensor, "rows rows"]:
    """Inner products of the rows, divided by their number of columns, after their mean is taken off."""
    gram = (table @ table.T).double().div_(table.shape[1])
    with_mean = gram @ (weights / weights.sum()).double()
    return gram.sub_(with_mean).sub_(with_mean[:, None]).add_(weighted_mean(with_mean, weights))


def from_dual(
    table: Table, dual: Tensor, targets: Targets, weights: RowWeights
) -> tuple[Float[Tensor, "features targets"], Float[Tensor, " targets"]]:
    """Coefficients and intercept from the solution by rows."""
    shift = weighted_mean(table, weights)
    # the entries of `dual` sum to 0, so the shift of the rows falls out of the product
    coefficients = (table.T @ dual.float()) / table.shape[1]
    return coefficients, weighted_mean(targets.double(), weights).float() - shift @ coefficients


def solve_by_rows(
    source: Source, width: int, targets: Targets, weights: RowWeights, penalty: float
) -> tuple[Float[Tensor, "features targets"], Float[Tensor, " targets"]]:
    """Coefficients and intercept from the Gram matrix of the rows, for fewer rows than columns."""
    table = torch.empty(len(targets), width)
    for rows in batches(len(table)):
        table[rows[0] : rows[-1] + 1] = source(rows)
    root = weights.double().sqrt()[:, None]
    matrix = centred_gram(table, weights).mul_(root).mul_(root.T)
    matrix.diagonal().add_(penalty)
    level = weighted_mean(targets.double(), weights)
    dual = root * torch.cholesky_solve((targets - level) * root, torch.linalg.cholesky(matrix))
    return from_dual(table, dual, targets, weights)


def solve_by_columns(
    source: Source, width: int, targets: Targets, weights: RowWeights, penalty: float
) -> tuple[Float[Tensor, "features targets"], Float[Tensor, " targets"]]:
    """Coefficients and intercept from second moments, summed over batches of rows."""
    moments = Moments.zeros(width, targets.shape[1])
    for rows in batches(len(targets)):
        moments.add(source(rows), targets[rows], weights[rows] / weights.mean())
    solution = NormalEquations(penalty * width).solve(moments).float()
    return solution[1:], solution[0]


def batches(n: int) -> Iterator[Int[np.ndarray, " batch"]]:
    """Row numbers, in order."""
    for start in range(0, n, BATCH):
        yield np.arange(start, min(n, start + BATCH))


def weighted_mean(table: Tensor, weights: RowWeights) -> Tensor:
    """Mean of the rows."""
    return (weights / weights.sum()).to(table.dtype) @ table


def check_penalties(penalties: Any) -> tuple[float, ...]:
    """Numbers above 0."""
    values = tuple(float(value) for value in penalties)
    check.require(
        len(values) > 0 and all(0 < value < float("inf") for value in values),
        f"`penalties` must be numbers above 0, got {penalties!r}",
    )
    return values


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use so many threads, here and in threads that are started meanwhile."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
