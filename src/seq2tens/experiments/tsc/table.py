"""Cells of the classification experiment, and its results table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seq2tens import _checks as check
from seq2tens.experiments.core.cells import AnyCell
from seq2tens.experiments.core.rows import AnyRow, RowTable
from seq2tens.experiments.tsc.models import MODELS

# PUBLISHED has zeros in front, which the network sees; MASKED is the same training with masks.
PUBLISHED, MASKED = "paper", "paper-masked"
RECIPES = ("fast", PUBLISHED, MASKED)
# The recipe of models that are not trained in epochs.
NO_RECIPE = "-"


@dataclass(frozen=True)
class Cell(AnyCell):
    """One fit and test: a data set, a model, a seed and a recipe."""

    dataset: str
    model: str
    seed: int
    recipe: str

    def __post_init__(self) -> None:
        super().__post_init__()
        check.choice("recipe", self.recipe, (*RECIPES, NO_RECIPE))

    def __str__(self) -> str:
        recipe = "" if self.recipe == NO_RECIPE else f", {self.recipe}"
        return f"{self.dataset} {self.model} (seed {self.seed}{recipe})"


def grid(
    experiment: str, datasets: Sequence[str], models: Sequence[str], *, seeds: int = 5, recipe: str = "fast"
) -> list[Cell]:
    """All cells, seed by seed, so that a table fills evenly.

    A model without randomness has one cell per data set; a model that is not trained in epochs has the same
    cells for every recipe.
    """
    check.positive_int("seeds", seeds)
    check.choice("recipe", recipe, RECIPES)
    for model in models:
        check.choice("models", model, tuple(MODELS))
    return [
        Cell(experiment, dataset, model, seed, recipe if MODELS[model].trained else NO_RECIPE)
        for seed in range(seeds)
        for dataset in datasets
        for model in models
        if seed == 0 or MODELS[model].seeded
    ]


@dataclass(frozen=True, kw_only=True)
class Row(AnyRow):
    """A finished cell.

    `recipe` is `"-"` for a model that is not trained in epochs. `epochs`, `parameters` (the number of
    trainable ones, including the last linear layer) and `lowest_train_loss`, that of the best epoch, are then
    None; the latter is also None in older rows. Times do not include compilation at first use. The other
    columns are those of `AnyRow`.
    """

    key: str
    dataset: str
    model: str
    seed: int
    recipe: str
    accuracy: float
    epochs: int | None
    lowest_train_loss: float | None = None
    parameters: int | None
    fit_seconds: float
    predict_seconds: float
    peak_mib: float
    threads: int
    n_train: int
    n_test: int
    versions: str
    commit: str
    finished: str

    SHARES = ("accuracy",)
    AMOUNTS = ("fit_seconds", "predict_seconds")

    @property
    def headline(self) -> str:
        """The main result, in a few words."""
        return f"accuracy {self.accuracy:.4f}, {self.fit_seconds + self.predict_seconds:.1f} s"


TABLE = RowTable(Row)


def read(path: str | Path) -> list[Row]:
    """All finished cells of a table, in the order in which they were added; see `RowTable.read`."""
    return TABLE.read(path)


def append(path: str | Path, row: Row) -> bool:
    """Add a row at the end of a table, unless it has the cell already; return whether it was added."""
    return TABLE.append(path, row)
