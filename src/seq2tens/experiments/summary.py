"""Finished cells of the classification experiment, joined over seeds and set beside published numbers."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seq2tens.experiments.cells import NO_RECIPE
from seq2tens.experiments.models import MODELS
from seq2tens.experiments.published import ACCURACY, DATASETS, SIGNED_RANK, Probabilities
from seq2tens.experiments.statistics import Scores
from seq2tens.experiments.table import Row


@dataclass(frozen=True)
class Outcome:
    """One data set and model over its seeds: means, but for the memory, which is the largest."""

    rows: tuple[Row, ...]

    @property
    def accuracy(self) -> float:
        # Equal accuracies must be equal numbers, for they share a rank.
        return round(statistics.fmean(row.accuracy for row in self.rows), 9)

    @property
    def spread(self) -> float | None:
        """Standard deviation over seeds, None for one seed."""
        return statistics.stdev(row.accuracy for row in self.rows) if len(self.rows) > 1 else None

    @property
    def fit_seconds(self) -> float:
        return statistics.fmean(row.fit_seconds for row in self.rows)

    @property
    def predict_seconds(self) -> float:
        return statistics.fmean(row.predict_seconds for row in self.rows)

    @property
    def epochs(self) -> float | None:
        return mean_of(row.epochs for row in self.rows)

    @property
    def parameters(self) -> float | None:
        return mean_of(row.parameters for row in self.rows)

    @property
    def peak_mib(self) -> float:
        return max(row.peak_mib for row in self.rows)


@dataclass(frozen=True)
class Results:
    """Outcomes by data set and model, of one recipe (`"-"`: of models that have none)."""

    recipe: str
    cells: dict[tuple[str, str], Outcome]

    @property
    def title(self) -> str:
        """What they are called in captions."""
        return "models without a recipe" if self.recipe == NO_RECIPE else f"recipe {self.recipe}"

    @property
    def slug(self) -> str:
        """What they are called in names of files."""
        return "others" if self.recipe == NO_RECIPE else self.recipe

    @property
    def datasets(self) -> list[str]:
        """Those of the paper, and others that were run."""
        return list(dict.fromkeys([*DATASETS, *(dataset for dataset, _ in self.cells)]))

    @property
    def models(self) -> list[str]:
        """Those that were run, in the order of the registry."""
        return in_order(model for _, model in self.cells)

    @property
    def known_models(self) -> list[str]:
        """Those that were run or could be."""
        trained = self.recipe != NO_RECIPE
        return in_order([*(name for name, model in MODELS.items() if model.trained == trained), *self.models])

    def of(self, model: str) -> dict[str, Outcome]:
        """What a model did, by data set."""
        return {dataset: cell for (dataset, other), cell in self.cells.items() if other == model}

    def with_others(self, others: Results) -> Results:
        """These and others on the same data sets, to compare all of them."""
        own = {dataset for dataset, _ in self.cells}
        beside = {place: outcome for place, outcome in others.cells.items() if place[0] in own}
        return Results(self.recipe, {**self.cells, **beside})

    def scores(self) -> Scores:
        """Our accuracies."""
        found: dict[str, dict[str, float]] = defaultdict(dict)
        for (dataset, model), cell in self.cells.items():
            found[dataset][model] = cell.accuracy
        return Scores.from_dict(found, self.models, [name for name in self.datasets if name in found])


def summarise(rows: Sequence[Row], recipe: str) -> Results:
    """The finished cells of a recipe."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.recipe == recipe:
            groups[row.dataset, row.model].append(row)
    return Results(recipe, {place: Outcome(tuple(group)) for place, group in groups.items()})


def published(dataset: str, model: str) -> float | None:
    """The accuracy in the paper, None where it has none."""
    score = ACCURACY.get(dataset, {}).get(_published_name(model))
    return None if score is None else score.mean


def published_probabilities(left: str, right: str) -> Probabilities | None:
    """What the paper's signed-rank test says of two models, None where it does not."""
    return SIGNED_RANK.get((_published_name(left), _published_name(right)))


def _published_name(model: str) -> str:
    return (MODELS[model].published if model in MODELS else None) or ""


def published_scores(datasets: Sequence[str], models: Sequence[str]) -> Scores:
    """The paper's accuracies by our names."""
    found = {
        dataset: {model: value for model in models if (value := published(dataset, model)) is not None}
        for dataset in datasets
    }
    return Scores.from_dict(found, models, datasets)


def label(model: str) -> str:
    """What a model is called on a page."""
    return MODELS[model].label if model in MODELS else model


def in_order(models: Iterable[str]) -> list[str]:
    """Each once, in the order of the registry; unknown ones last."""
    found = list(dict.fromkeys(models))
    order = {name: i for i, name in enumerate(MODELS)}
    return sorted(found, key=lambda name: order.get(name, len(order)))


def mean_of(numbers: Iterable[float | None]) -> float | None:
    """The mean of those that are there, None if none is."""
    known = [number for number in numbers if number is not None]
    return statistics.fmean(known) if known else None
