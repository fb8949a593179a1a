"""Comparisons of models over data sets: mean ranks, critical differences, the Bayesian signed-rank test.

All statistics in the paper follow from its table of accuracies, given two conventions that it does not state:

- Its average ranks are *dense*: equal accuracies share a rank and the next rank is the next integer, so
  that three models at the top are followed by rank 2. Missing results are left out. Mean ranks for tests are
  different: there, ties share the mean of the ranks that they occupy (`ties="average"`).
- In its signed-rank test, pairs of data sets with a missing result count as equivalent: missing values were
  passed to baycomp, where every comparison with NaN is false. This affects ARKernel and mvARF (NetFlow) and
  mvARF, MUSE and MLSTMFCN (PEMS); here it is `missing="equivalent"`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from seq2tens import _checks as check

# The paper's level of the test, region of practical equivalence and number of draws from the posterior.
ALPHA, ROPE, SAMPLES = 0.1, 1e-3, 100_000


@dataclass(frozen=True)
class Scores:
    """A score for each data set (row) and model (column), NaN if missing; higher is better."""

    datasets: tuple[str, ...]
    models: tuple[str, ...]
    values: Float[np.ndarray, "datasets models"]

    def __post_init__(self) -> None:
        expected = (len(self.datasets), len(self.models))
        check.require(
            self.values.shape == expected,
            f"`values` must have shape (datasets, models) = {expected}, got {self.values.shape}",
        )

    @classmethod
    def from_dict(
        cls,
        numbers: Mapping[str, Mapping[str, float]],
        models: Sequence[str] | None = None,
        datasets: Sequence[str] | None = None,
    ) -> Scores:
        """Create scores from numbers by data set and model, in the given order or that of the numbers."""
        rows = tuple(numbers if datasets is None else datasets)
        columns = tuple(dict.fromkeys(name for row in numbers.values() for name in row))
        columns = columns if models is None else tuple(models)
        values = [[numbers.get(row, {}).get(column, np.nan) for column in columns] for row in rows]
        return cls(rows, columns, np.array(values, dtype=float).reshape(len(rows), len(columns)))

    def column(self, model: str) -> Float[np.ndarray, " datasets"]:
        """All scores of a model."""
        check.choice("model", model, self.models)
        return self.values[:, self.models.index(model)]

    def in_common(self, left: str, right: str) -> int:
        """The number of data sets on which both models have a score."""
        return int((~np.isnan(self.column(left) + self.column(right))).sum())

    def part(self, datasets: Sequence[str], models: Sequence[str]) -> Scores:
        """Select rows and columns."""
        rows = [self.datasets.index(name) for name in datasets]
        columns = [self.models.index(name) for name in models]
        return Scores(tuple(datasets), tuple(models), self.values[np.ix_(rows, columns)])

    def complete(self) -> Scores:
        """Remove the row or column with the largest fraction of missing scores, until none is missing."""
        gaps = np.isnan(self.values)
        rows, columns = np.arange(len(self.datasets)), np.arange(len(self.models))
        while (left := gaps[np.ix_(rows, columns)]).any():
            by_row, by_column = left.mean(axis=1), left.mean(axis=0)
            if by_row.max() >= by_column.max():
                rows = np.delete(rows, by_row.argmax())
            else:
                columns = np.delete(columns, by_column.argmax())
        return self.part([self.datasets[i] for i in rows], [self.models[i] for i in columns])


def ranks(scores: Scores, ties: str = "average") -> Float[np.ndarray, "datasets models"]:
    """Ranks of the models on each data set, 1 for the highest score, NaN for a missing one.

    Args:
        scores: what to rank.
        ties: `"average"`, the mean of the ranks that equal scores occupy, or `"dense"`, one rank for all of
            them and the next integer for the next score.
    """
    from scipy.stats import rankdata

    check.choice("ties", ties, ("average", "dense"))
    by_dataset = np.full(scores.values.shape, np.nan)
    for row, values in zip(by_dataset, scores.values, strict=True):
        known = ~np.isnan(values)
        row[known] = rankdata(-values[known], method=ties)
    return by_dataset


def mean_ranks(scores: Scores, ties: str = "average") -> dict[str, float]:
    """Mean rank of every model over the data sets on which it has a score, NaN if it has none."""
    by_dataset = ranks(scores, ties)
    return {
        model: float(np.mean(column[~np.isnan(column)])) if not np.isnan(column).all() else float("nan")
        for model, column in zip(scores.models, by_dataset.T, strict=True)
    }


def permutation_test(left: Sequence[float], right: Sequence[float]) -> float:
    """The p-value of a two-sided permutation test of equal means.

    The test is exact: it enumerates all assignments of the numbers to left and right, so there should be few.
    """
    numbers = np.array([*left, *right], dtype=float)
    check.require(len(left) > 0 and len(right) > 0, "`left` and `right` must hold at least one number each")
    chosen = np.array(list(itertools.combinations(range(len(numbers)), len(left))))
    sums = numbers[chosen].sum(axis=1)
    differences = np.abs(sums / len(left) - (numbers.sum() - sums) / len(right))
    return float(np.mean(differences >= differences[0] - 1e-9))  # up to rounding


def critical_difference(n_models: int, n_datasets: int, alpha: float = ALPHA) -> float:
    """The smallest significant difference of mean ranks in Nemenyi's test.

    The quantile is that of the studentized range for `n_models`. aeon (1.6) has a table of the same numbers,
    but an off-by-one error in the number of models makes its difference a little too large.
    """
    from scipy.stats import studentized_range

    check.require(n_models >= 2, f"`n_models` must be at least 2, got {n_models}")
    check.positive_int("n_datasets", n_datasets)
    check.require(0 < alpha < 1, f"`alpha` must lie between 0 and 1, got {alpha}")
    quantile = studentized_range.ppf(1 - alpha, n_models, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(n_models * (n_models + 1) / (6 * n_datasets)))


@dataclass(frozen=True)
class Ranking:
    """Models by mean rank, best first, with groups of models that do not differ by Nemenyi's test.

    A group is given by the indices of its first and last model. `p_value` is that of Friedman's test of the
    hypothesis that all models are equal: unless it is below the level, they form one group. It is None for
    two models, which need no such test.
    """

    models: tuple[str, ...]
    ranks: tuple[float, ...]
    n_datasets: int
    critical_difference: float
    p_value: float | None
    groups: tuple[tuple[int, int], ...]


def ranking(scores: Scores, alpha: float = ALPHA) -> Ranking:
    """Rank models that all have a score on every data set."""
    n_datasets, n_models = scores.values.shape
    check.require(not np.isnan(scores.values).any(), "`scores` must have no gaps, see `Scores.complete`")
    difference = critical_difference(n_models, n_datasets, alpha)
    mean = mean_ranks(scores)
    order = sorted(scores.models, key=mean.__getitem__)
    sorted_ranks = tuple(mean[model] for model in order)
    p_value = _friedman(scores)
    alike = p_value is not None and p_value >= alpha
    groups = ((0, n_models - 1),) if alike else _groups(sorted_ranks, difference)
    return Ranking(tuple(order), sorted_ranks, n_datasets, difference, p_value, groups)


def _friedman(scores: Scores) -> float | None:
    """The p-value of Friedman's test that all models are equal; None for fewer than three models."""
    from aeon.benchmarking.stats import check_friedman

    if len(scores.models) < 3:
        return None
    by_dataset = ranks(scores)
    return float(check_friedman(by_dataset)) if np.ptp(by_dataset, axis=1).any() else 1.0


def _groups(sorted_ranks: Sequence[float], difference: float) -> tuple[tuple[int, int], ...]:
    """The maximal runs of at least two models whose ranks differ by less than `difference`."""
    groups: list[tuple[int, int]] = []
    for first, rank in enumerate(sorted_ranks):
        last = max(i for i, other in enumerate(sorted_ranks) if other - rank < difference)
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return tuple(groups)


@dataclass(frozen=True)
class Posterior:
    """The posterior of a signed-rank test, as draws of P(left better, equivalent, right better)."""

    left: str
    right: str
    n_datasets: int
    sample: Float[np.ndarray, "samples 3"]

    @cached_property
    def probabilities(self) -> tuple[float, float, float]:
        """The probabilities that the left model is better, both are equivalent, the right one is better."""
        winners = np.bincount(self.sample.argmax(axis=1), minlength=3) / len(self.sample)
        return (float(winners[0]), float(winners[1]), float(winners[2]))


def signed_rank(
    scores: Scores,
    left: str,
    right: str,
    *,
    rope: float = ROPE,
    samples: int = SAMPLES,
    missing: str = "drop",
    random_state: int = 0,
) -> Posterior:
    """Bayesian signed-rank test of two models over data sets (Benavoli et al. 2014, by baycomp).

    Args:
        scores: the scores of both models.
        left: name of the first model.
        right: name of the second model.
        rope: scores that differ by no more than this are equivalent.
        samples: number of draws from the posterior; 100,000 take about a second.
        missing: `"drop"` leaves out data sets on which one of them has no score; `"equivalent"` counts them
            as equivalent, as in the paper.
        random_state: seed of the draws.
    """
    from baycomp import SignedRankTest

    check.choice("missing", missing, ("drop", "equivalent"))
    check.require(rope > 0, f"`rope` must be above 0, got {rope}")
    check.positive_int("samples", samples)
    pair = np.stack([scores.column(left), scores.column(right)])
    known = ~np.isnan(pair).any(axis=0)
    check.require(bool(known.any()), f"{left} and {right} must have a data set in common, got none")
    x, y = pair[:, known] if missing == "drop" else pair
    sample = SignedRankTest.sample(x, y, rope, nsamples=samples, random_state=random_state)
    return Posterior(left, right, int(known.sum()), sample)
