"""Finished cells of the imputation experiment, joined over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import NamedTuple

from seq2tens.experiments.imputation.models import MODELS, SETTINGS
from seq2tens.experiments.imputation.published import SCORES
from seq2tens.experiments.imputation.table import ImputationRow
from seq2tens.experiments.report.runs import Runs, grouped
from seq2tens.experiments.report.tables import LESS, MORE, Entry, Score

# The less, the better.
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
        """What the model is called on a page."""
        return MODELS[self.model].label

    @property
    def trained(self) -> bool:
        """Whether there are epochs."""
        return self.epoch_limit > 0

    @property
    def whole(self) -> bool:
        """Whether training was as in the paper."""
        return not self.trained or (not self.limit and self.epoch_limit >= SETTINGS[self.dataset].epochs)

    @property
    def steps_seen(self) -> int:
        """Sequences seen in training, repetitions counted."""
        return self.epoch_limit * self.rows[0].n_train

    @property
    def training(self) -> str:
        """How much training, in words."""
        few = f", {self.limit:,} training sequences" if self.limit else ""
        return f"{self.epoch_limit} epochs{few}"

    @property
    def name(self) -> str:
        """What they are called in figures."""
        return self.label if self.whole else f"{self.label}, {self.training}"

    @property
    def orders(self) -> list[float]:
        """The AUROC in each random order of the sequences, the mean of the runs; none without such orders."""
        of_runs = [[float(text) for text in row.auroc_orders.split()] for row in self.rows]
        return [fmean(in_order) for in_order in zip(*of_runs, strict=False)]

    def published_score(self, measure: str) -> Entry:
        """Mean ± standard deviation beside the paper's."""
        better = LESS if measure in ERRORS else MORE
        return self.score(measure, published(self.label, self.dataset, measure), better)


class PairedDifference(NamedTuple):
    """Of AUROCs in the same random orders: mean and standard deviation, and in how many it is above 0."""

    mean: float
    spread: float
    positive: int
    orders: int


def paired_difference(ours: ImputationRuns, other: ImputationRuns) -> PairedDifference | None:
    """The first less the second, None without at least two common orders."""
    changes = [a - b for a, b in zip(ours.orders, other.orders, strict=False)]
    if len(changes) < 2:
        return None
    return PairedDifference(
        fmean(changes), stdev(changes), sum(change > 0 for change in changes), len(changes)
    )


def runs_over_seeds(rows: Sequence[ImputationRow]) -> list[ImputationRuns]:
    """All runs, data sets and models in the order of the registry, those with the most training first."""
    groups = grouped(rows, "dataset", "model", "epoch_limit", "limit")
    runs = [ImputationRuns(group, *place) for place, group in groups.items()]
    sets, models = list(SETTINGS), list(MODELS)
    return sorted(
        runs, key=lambda group: (sets.index(group.dataset), models.index(group.model), -group.steps_seen)
    )


def longest(runs: Sequence[ImputationRuns], dataset: str) -> list[ImputationRuns]:
    """Of each model on a data set the runs with the most training."""
    first: dict[str, ImputationRuns] = {}
    for group in runs:
        if group.dataset == dataset:
            first.setdefault(group.model, group)
    return list(first.values())


def published(label: str, dataset: str, measure: str) -> Score | None:
    """The paper's mean and standard deviation, None where it has none."""
    return SCORES.get(label, {}).get(dataset, {}).get(measure)
