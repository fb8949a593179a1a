"""Finished cells of the mortality experiment, joined over seeds."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from seq2tens.experiments.mortality_models import MODELS
from seq2tens.experiments.mortality_published import SCORES
from seq2tens.experiments.mortality_table import EPOCHS, MortalityRow
from seq2tens.experiments.published import Score

FOUND = "found by search"


@dataclass(frozen=True)
class Runs:
    """Final runs of one model with the same settings and the same limit of epochs."""

    model: str
    settings: str
    epoch_limit: int
    rows: tuple[MortalityRow, ...]

    @property
    def label(self) -> str:
        """What the model is called on a page."""
        return MODELS[self.model].label if self.model in MODELS else self.model

    @property
    def origin(self) -> str:
        """Where the settings come from."""
        return FOUND if self.settings.startswith("{") else self.settings

    @property
    def whole(self) -> bool:
        """Whether training could take all the epochs it wanted."""
        return self.epoch_limit >= EPOCHS

    def mean(self, column: str) -> float:
        """Over runs."""
        return statistics.fmean(getattr(row, column) for row in self.rows)

    def spread(self, column: str) -> float | None:
        """Standard deviation over runs, None for one."""
        if len(self.rows) < 2:
            return None
        return statistics.stdev(getattr(row, column) for row in self.rows)


def final_runs(rows: Sequence[MortalityRow]) -> list[Runs]:
    """All final runs, models in the order of the registry, each with what was run first first."""
    groups: dict[tuple[str, str, int], list[MortalityRow]] = defaultdict(list)
    for row in rows:
        if row.purpose == "final":
            groups[row.model, row.settings, row.epoch_limit].append(row)
    order = {name: i for i, name in enumerate(MODELS)}
    found = sorted(groups.items(), key=lambda item: order.get(item[0][0], len(order)))
    return [Runs(*place, tuple(group)) for place, group in found]


def published(model: str, measure: str) -> Score | None:
    """The paper's mean and standard deviation, None where it has none."""
    return SCORES.get(MODELS[model].label, {}).get(measure) if model in MODELS else None
