"""Ridge regression on many features, with a leave-one-out penalty and tables too long for memory.

Held-out predictions leave out folds of neighbouring rows: neighbours often come from one recording, and would
reveal the target of a row that is left out alone.

The features are standardised, so one penalty suits all; it is counted per feature, so that its meaning does
not depend on their number. With more than `SAMPLE` rows, statistics and penalty are estimated from a sample:
a penalty is the ratio of two variances, of noise and of coefficients, which does not depend on the number of
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from aeon.utils.validation import check_n_jobs
from jaxtyping import Float, Int
from torch import Tensor

from seq2tens import _checks as check
from seq2tens.estimators.random.moments import Moments, NormalEquations, RowWeights, Table, Targets

PENALTIES = tuple(10.0 ** (k / 3) for k in range(-12, 10))
SAMPLE = 2048  # rows for leave-one-out
BATCH = 2048  # rows of a longer table at a time
FOLDS = 10
LIMIT = 10.0  # standard deviations; values further out carry no more information

# A function that returns the features of the rows with these numbers.
Source = Callable[[Int[np.ndarray, " chosen"]], Table]
Strata = Int[np.ndarray, " rows"]


@dataclass
class Ridge:
    """A fitted linear map of features, with its penalty and held-out predictions."""

    mean: Float[Tensor, " features"]
    scale: Float[Tensor, " features"]
    coefficients: Float[Tensor, "features targets"]
    intercept: Float[Tensor, " targets"]
    penalty: float
    # Predictions for the sampled rows by models fitted without their fold, and the row numbers; not saved.
    held_out: Float[Tensor, "sample targets"] | None = None
    sample: Int[np.ndarray, " sample"] | None = None

    def __call__(self, table: Table) -> Targets:
        """Return the predictions; the table is overwritten."""
        return standardize(table, self.mean, self.scale) @ self.coefficients + self.intercept

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors that `from_tensors` needs."""
        names = ("mean", "scale", "coefficients", "intercept")
        tensors = {name: getattr(self, name) for name in names}
        return {**tensors, "penalty": torch.tensor(self.penalty, dtype=torch.float64)}

    @classmethod
    def from_tensors(cls, tensors: dict[str, Any]) -> Ridge:
        """Restore the map from its `tensors()`."""
        return cls(**{**tensors, "penalty": float(tensors["penalty"])})


def fit_ridge(
    source: Source,
    targets: Targets,
    weights: RowWeights,
    rng: np.random.Generator,
    penalties: tuple[float, ...] = PENALTIES,
    strata: Strata | None = None,
) -> Ridge:
    """Fit targets to features, which are computed a few thousand rows at a time.

    Each stratum, such as a class, is divided into folds separately.
    """
    n = len(targets)
    rows = np.arange(n) if n <= SAMPLE else np.sort(rng.permutation(n)[:SAMPLE])
    table = source(rows)
    mean, scale = statistics(table, weights[rows])
    standardize(table, mean, scale)
    folds = neighbors(np.zeros(n, dtype=int)[rows] if strata is None else strata[rows])
    penalty, dual, held_out = choose_penalty(table, targets[rows], weights[rows], folds, penalties)
    if n <= SAMPLE:
        coefficients, intercept = from_dual(table, dual, targets, weights)
    else:
        del table, dual
        solve = solve_by_rows if n <= len(mean) else solve_by_columns
        coefficients, intercept = solve(
            lambda rows: standardize(source(rows), mean, scale), len(mean), targets, weights, penalty
        )
    return Ridge(mean, scale, coefficients, intercept, penalty, held_out, rows)


def statistics(table: Table, weights: RowWeights) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of every column; infinite, to ignore the column, if constant."""
    share = (weights / weights.sum()).float()
    mean = share @ table
    variance = torch.zeros_like(mean)
    for rows in torch.arange(len(table)).split(256):
        variance += share[rows] @ (table[rows] - mean).square()
    scale = variance.sqrt()
    # rounding in float32 can give a constant column a small deviation
    return mean, torch.where(scale > 1e-5 * mean.abs().clamp(min=1e-2), scale, torch.inf)


def standardize(table: Table, mean: Tensor, scale: Tensor) -> Table:
    """Standardise in place, and clip to the limit."""
    return table.sub_(mean).div_(scale).clamp_(-LIMIT, LIMIT)


def neighbors(strata: Strata) -> Strata:
    """Return the fold of each row: runs of neighbouring rows within each stratum."""
    folds = np.empty_like(strata)
    for number, stratum in enumerate(np.unique(strata)):
        rows = np.flatnonzero(strata == stratum)
        # single rows go to different folds, or nothing might be left to train on
        folds[rows] = np.arange(len(rows)) * FOLDS // len(rows) if len(rows) > 1 else number % FOLDS
    return folds


def choose_penalty(
    table: Table, targets: Targets, weights: RowWeights, folds: Strata, penalties: tuple[float, ...]
) -> tuple[float, Tensor, Targets]:
    """Return the penalty with the smallest leave-one-out error, its dual solution, and held-out predictions.

    Held-out predictions leave out the whole fold of a row.
    """
    spectrum = Spectrum.of(table, targets, weights)
    errors = [float(spectrum.left_out(penalty).square().sum()) for penalty in penalties]
    penalty = penalties[int(np.argmin(errors))]
    root = spectrum.root
    residuals = spectrum.folds_left_out(penalty, folds) / root.clamp(min=1e-12)
    return penalty, spectrum.dual(penalty) * root, (targets - residuals).float()


@dataclass(frozen=True)
class Spectrum:
    """Eigendecomposition K = Q diag(e) Qᵀ of the weighted Gram matrix of the rows, and QᵀY for the targets.

    The intercept is not penalised: its direction gets an eigenvalue so large that the penalty has no effect.
    """

    values: Float[Tensor, " rows"]
    vectors: Float[Tensor, "rows rows"]
    rotated: Float[Tensor, "rows targets"]
    root: Float[Tensor, "rows 1"]

    @classmethod
    def of(cls, table: Table, targets: Targets, weights: RowWeights) -> Spectrum:
        """Compute the decomposition from features."""
        root = weights.double().sqrt()[:, None]
        gram = centered_gram(table, weights)
        direction = root / root.norm()
        free = 1e6 * gram.diagonal().max().clamp(min=1.0)
        values, vectors = torch.linalg.eigh(gram * root * root.T + free * direction @ direction.T)
        centered = targets.double() - weighted_mean(targets.double(), weights)
        return cls(values.clamp(min=0), vectors, vectors.T @ (centered * root), root)

    def dual(self, penalty: float) -> Float[Tensor, "rows targets"]:
        """Return (K + λ)⁻¹Y."""
        return self.vectors @ (self.rotated / (self.values + penalty)[:, None])

    def left_out(self, penalty: float) -> Float[Tensor, "rows targets"]:
        """Return leave-one-out errors: the rows of (K + λ)⁻¹Y divided by the diagonal of (K + λ)⁻¹."""
        diagonal = self.vectors.square() @ (1 / (self.values + penalty))
        return self.dual(penalty) / diagonal[:, None]

    def folds_left_out(self, penalty: float, folds: Strata) -> Float[Tensor, "rows targets"]:
        """Return errors with the whole fold left out: a block of (K + λ)⁻¹ takes the place of an entry."""
        residuals = self.dual(penalty)
        for fold in np.unique(folds):
            rows = torch.from_numpy(np.flatnonzero(folds == fold))
            vectors = self.vectors[rows]
            residuals[rows] = torch.linalg.solve(
                (vectors / (self.values + penalty)) @ vectors.T, residuals[rows]
            )
        return residuals


def centered_gram(table: Table, weights: RowWeights) -> Float[Tensor, "rows rows"]:
    """Return inner products of the centred rows, divided by the number of columns."""
    gram = (table @ table.T).double().div_(table.shape[1])
    with_mean = gram @ (weights / weights.sum()).double()
    return gram.sub_(with_mean).sub_(with_mean[:, None]).add_(weighted_mean(with_mean, weights))


def from_dual(
    table: Table, dual: Tensor, targets: Targets, weights: RowWeights
) -> tuple[Float[Tensor, "features targets"], Float[Tensor, " targets"]]:
    """Return coefficients and intercept from the dual solution."""
    shift = weighted_mean(table, weights)
    # the entries of `dual` sum to 0, so the shift of the rows cancels in the product
    coefficients = (table.T @ dual.float()) / table.shape[1]
    return coefficients, weighted_mean(targets.double(), weights).float() - shift @ coefficients


def solve_by_rows(
    source: Source, width: int, targets: Targets, weights: RowWeights, penalty: float
) -> tuple[Float[Tensor, "features targets"], Float[Tensor, " targets"]]:
    """Return coefficients and intercept from the Gram matrix, for at most as many rows as columns."""
    table = torch.empty(len(targets), width)
    for rows in batches(len(table)):
        table[rows[0] : rows[-1] + 1] = source(rows)
    root = weights.double().sqrt()[:, None]
    matrix = centered_gram(table, weights).mul_(root).mul_(root.T)
    matrix.diagonal().add_(penalty)
    level = weighted_mean(targets.double(), weights)
    dual = root * torch.cholesky_solve((targets - level) * root, torch.linalg.cholesky(matrix))
    return from_dual(table, dual, targets, weights)


def solve_by_columns(
    source: Source, width: int, targets: Targets, weights: RowWeights, penalty: float
) -> tuple[Float[Tensor, "features targets"], Float[Tensor, " targets"]]:
    """Return coefficients and intercept from second moments, summed over batches of rows."""
    moments = Moments.zeros(width, targets.shape[1])
    for rows in batches(len(targets)):
        moments.add(source(rows), targets[rows], weights[rows] / weights.mean())
    solution = NormalEquations(penalty * width).solve(moments).float()
    return solution[1:], solution[0]


def batches(n: int) -> Iterator[Int[np.ndarray, " batch"]]:
    """Yield row numbers in order, a batch at a time."""
    for start in range(0, n, BATCH):
        yield np.arange(start, min(n, start + BATCH))


def weighted_mean(table: Tensor, weights: RowWeights) -> Tensor:
    """Return the weighted mean of the rows."""
    return (weights / weights.sum()).to(table.dtype) @ table


def check_penalties(penalties: Any) -> tuple[float, ...]:
    """Check that penalties are numbers above 0, and return them."""
    rule = f"`penalties` must be numbers above 0, got {penalties!r}"
    try:
        values = tuple(float(value) for value in penalties)
    except (TypeError, ValueError) as error:
        raise check.ArgumentError(rule) from error
    check.require(len(values) > 0 and all(0 < value < float("inf") for value in values), rule)
    return values


_callers_threads: ContextVar[int] = ContextVar("threads of torch outside of `torch_threads`", default=0)


def threads(n_jobs: int) -> int:
    """Return a number of threads; if `n_jobs` is 1, that of torch outside of any `torch_threads`."""
    return (_callers_threads.get() or torch.get_num_threads()) if n_jobs == 1 else check_n_jobs(n_jobs)


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use this many threads, in this thread and in those started within the context."""
    before = torch.get_num_threads()
    token = _callers_threads.set(_callers_threads.get() or before)
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _callers_threads.reset(token)
