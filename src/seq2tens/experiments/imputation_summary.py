"""Finished cells of the imputation experiment, joined over seeds."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from seq2tens.experiments.imputation_models import MODELS, SETTINGS
from seq2tens.experiments.imputation_published import SCORES
from seq2tens.experiments.imputation_table import ImputationRow
from seq2tens.experiments.published import Score


@dataclass(frozen=True)
class Runs:
    """Runs of one model on one data set, trained for the same number of epochs on the same sequences."""

    dataset: str
    model: str
    epoch_limit: int
    limit: int
    rows: tuple[ImputationRow, ...]

    @property
    def label(self) -> str:
        """What the model is called on a page."""
        return label(self.model)

    @property
    def trained(self) -> bool:
        """Whether there are epochs."""
        return self.epoch_limit > 0

    @property
    def whole(self) -> bool:
        """Whether training was as in the paper."""
        return not self.trained or (not self.limit and self.epoch_limit >= SETTINGS[self.dataset].epochs)

    @property
    def extent(self) -> int:
        """Sequences seen in training, repetitions counted."""
        return self.epoch_limit * self.rows[0].n_train

    def mean(self, column: str) -> float | None:
        """Over runs, None where it was not measured."""
        values = self._values(column)
        return statistics.fmean(values) if values else None

    def spread(self, column: str) -> float | None:
        """Standard deviation over runs, None for one."""
        values = self._values(column)
        return statistics.stdev(values) if len(values) > 1 else None

    def _values(self, column: str) -> list[float]:
        return [value for row in self.rows if (value := getattr(row, column)) is not None]


def joined(rows: Sequence[ImputationRow]) -> list[Runs]:
    """All runs, data sets and models in the order of the registry, those with the most training first."""
    groups: dict[tuple[str, str, int, int], list[ImputationRow]] = defaultdict(list)
    for row in rows:
        groups[row.dataset, row.model, row.epoch_limit, row.limit].append(row)
    found = [Runs(*place, tuple(group)) for place, group in groups.items()]
    sets, models = list(SETTINGS), list(MODELS)
    return sorted(found, key=lambda runs: (sets.index(runs.dataset), models.index(runs.model), -runs.extent))


def longest(runs: Sequence[Runs], dataset: str) -> list[Runs]:
    """Of each model on a data set the runs with the most training."""
    first: dict[str, Runs] = {}
    for group in runs:
        if group.dataset == dataset:
            first.setdefault(group.model, group)
    return list(first.values())


def label(model: str) -> str:
    """What a model is called on a page."""
    return MODELS[model].label


def published(model_label: str, dataset: str, measure: str) -> Score | None:
    """The paper's mean and standard deviation, None where it has none."""
    return SCORES.get(model_label, {}).get(dataset, {}).get(measure)
