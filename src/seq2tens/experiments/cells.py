"""Cells: what an experiment consists of, as pure data. Declaring them touches no files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from typing_extensions import Self

from seq2tens import _checks as check
from seq2tens.experiments.models import MODELS
from seq2tens.training._fields import from_fields

RECIPES = ("fast", "paper")
# In the place of a recipe, for models that are not trained in epochs.
NO_RECIPE = "-"


@dataclass(frozen=True)
class AnyCell:
    """What cells of all experiments have in common: fields are strings and integers, and make up the key."""

    experiment: str

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "str" and not isinstance(value, str):
                raise TypeError(f"`{field.name}` must be a string, got {type(value).__name__}")
            if field.type == "int":
                if isinstance(value, bool) or not isinstance(value, int):
                    raise TypeError(f"`{field.name}` must be an integer, got {type(value).__name__}")
                check.require(value >= 0, f"`{field.name}` must be at least 0, got {value}")

    @property
    def key(self) -> str:
        """The name under which a finished cell is found again."""
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def to_dict(self) -> dict[str, Any]:
        """The cell as JSON data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The cell that `to_dict` wrote; a key that it does not know is an error."""
        return from_fields(cls, data, "cell")


@dataclass(frozen=True)
class Cell(AnyCell):
    """One fit and its test: a data set, a model, a seed and a recipe."""

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

    A model without randomness has one cell per data set, and one that is not trained in epochs the same cells
    whatever the recipe.
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
