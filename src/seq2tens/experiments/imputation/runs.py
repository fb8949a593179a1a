"""Finished cells of the imputation experiment, grouped over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import NamedTuple

from seq2tens.experiments.imputation.models import MODELS, SETTINGS
from seq2tens.experiments.imputation.published import SCORES
from seq2tens.experiments.imputation.table import ImputationRow
from seq2tens.experiments.report.runs import Runs, grouped
from seq2tens.experiments.report.tables import HIGHER, LOWER, Entry, Score

# Lower is better for these.
ERRORS = ("nll", "mse", "mse_probability")


@dataclass(frozen=True)
class ImputationRuns(Runs[ImputationRow]):
    """Runs of one model on one data set, trained for the same number of epochs on the same sequences."""

    dataset: str
    model: str
    epoch_limit: int
    limit: int

    @property
    def label(self) -> str:
        """The name of the model on a page."""
        return MODELS[self.model].label

    @property
    def trained(self) -> bool:
        """Whether the model is trained in epochs."""
        return self.epoch_limit > 0

    @property
    def whole(self) -> bool:
        """Whether training was as in the paper."""
        return not self.trained or (not self.limit and self.epoch_limit >= SETTINGS[self.dataset].epochs)

    @property
    def steps_seen(self) -> int:
        """The number of sequences seen in training, over all epochs."""
        return self.epoch_limit * self.rows[0].n_train

    @property
    def training(self) -> str:
        """A description of the amount of training."""
        few = f", {self.limit:,} training sequences" if self.limit else ""
        return f"{self.epoch_limit} epochs{few}"

    @property
    def name(self) -> str:
        """The name in figures."""
        return self.label if self.whole else f"{self.label}, {self.training}"

    @property
    def orders(self) -> list[float]:
        """The AUROC in each random order of the sequences, averaged over runs; empty without such orders."""
        of_runs = [[float(text) for text in row.auroc_orders.split()] for row in self.rows]
        return [fmean(in_order) for in_order in zip(*of_runs, strict=False)]

    def published_score(self, measure: str) -> Entry:
        """Mean ± standard deviation, compared with the paper's."""
        better = LOWER if measure in ERRORS else HIGHER
        return self.score(measure, published(self.label, self.dataset, measure), better)


class PairedDifference(NamedTuple):
    """Differences of AUROC in the same random orders: mean, standard deviation, how many are above 0."""

    mean: float
    spread: float
    positive: int
    orders: int


def paired_difference(ours: ImputationRuns, other: ImputationRuns) -> PairedDifference | None:
    """The first minus the second; None with fewer than two common orders."""
    changes = [a - b for a, b in zip(ours.orders, other.orders, strict=False)]
    if len(changes) < 2:
        return None
    return PairedDifference(
        fmean(changes), stdev(changes), sum(change > 0 for change in changes), len(changes)
    )


def runs_over_seeds(rows: Sequence[ImputationRow]) -> list[ImputationRuns]:
    """Group rows over seeds, in the order of the registry; of each model, the longest training first."""
    groups = grouped(rows, "dataset", "model", "epoch_limit", "limit")
    runs = [ImputationRuns(group, *place) for place, group in groups.items()]
    sets, models = list(SETTINGS), list(MODELS)
    return sorted(
        runs, key=lambda group: (sets.index(group.dataset), models.index(group.model), -group.steps_seen)
    )


def longest(runs: Sequence[ImputationRuns], dataset: str) -> list[ImputationRuns]:
    """For each model on a data set, the runs with the longest training."""
    first: dict[str, ImputationRuns] = {}
    for group in runs:
        if group.dataset == dataset:
            first.setdefault(group.model, group)
    return list(first.values())


def published(label: str, dataset: str, measure: str) -> Score | None:
    """The paper's mean and standard deviation, or None if it has none."""
    return SCORES.get(label, {}).get(dataset, {}).get(measure)
