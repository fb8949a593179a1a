"""Finished cells of the mortality experiment, joined over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seq2tens.experiments.mortality.models import MODELS
from seq2tens.experiments.mortality.published import SCORES
from seq2tens.experiments.mortality.table import EPOCHS, MortalityRow
from seq2tens.experiments.report.runs import Runs, grouped, in_order
from seq2tens.experiments.report.tables import Score

BY_SEARCH = "found by search"


@dataclass(frozen=True)
class FinalRuns(Runs[MortalityRow]):
    """Final runs of one model with the same settings and the same limit of epochs."""

    model: str
    settings: str
    epoch_limit: int

    @property
    def label(self) -> str:
        """What the model is called on a page."""
        return label(self.model)

    @property
    def origin(self) -> str:
        """Where the settings come from."""
        return BY_SEARCH if self.settings.startswith("{") else self.settings

    @property
    def whole(self) -> bool:
        """Whether training could take all the epochs it wanted."""
        return self.epoch_limit >= EPOCHS


def final_runs(rows: Sequence[MortalityRow]) -> list[FinalRuns]:
    """All final runs, models in the order of the registry, each with what was run first first."""
    finals = [row for row in rows if row.purpose == "final"]
    groups = grouped(finals, "model", "settings", "epoch_limit")
    order = in_order((row.model for row in finals), MODELS)
    return [
        FinalRuns(groups[place], *place) for place in sorted(groups, key=lambda place: order.index(place[0]))
    ]


def label(model: str) -> str:
    """What a model is called on a page."""
    return MODELS[model].label if model in MODELS else model


def published(model: str, measure: str) -> Score | None:
    """The paper's mean and standard deviation, None where it has none."""
    return SCORES.get(label(model), {}).get(measure)
