"""Finished cells of the classification experiment, grouped over seeds, and the published numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from seq2tens.experiments.report.runs import Runs, grouped, in_order
from seq2tens.experiments.report.statistics import Scores
from seq2tens.experiments.tsc.models import MODELS
from seq2tens.experiments.tsc.published import ACCURACY, DATASETS, SIGNED_RANK, SignedRankProbabilities
from seq2tens.experiments.tsc.table import NO_RECIPE, Row


class CellRuns(Runs[Row]):
    """The runs of one data set and model."""

    @property
    def accuracy(self) -> float:
        """The mean accuracy, rounded so that equal accuracies are equal numbers and share a rank."""
        return round(self.required_mean("accuracy"), 9)


@dataclass(frozen=True)
class Results:
    """Runs of one recipe by data set and model (`"-"`: models without a recipe)."""

    recipe: str
    cells: dict[tuple[str, str], CellRuns]

    @property
    def title(self) -> str:
        """The name in captions."""
        return "models without a recipe" if self.recipe == NO_RECIPE else f"recipe {self.recipe}"

    @property
    def slug(self) -> str:
        """The name in file names."""
        return "others" if self.recipe == NO_RECIPE else self.recipe

    @property
    def datasets(self) -> list[str]:
        """The data sets of the paper, and others that were run."""
        return list(dict.fromkeys([*DATASETS, *(dataset for dataset, _ in self.cells)]))

    @property
    def models(self) -> list[str]:
        """The models that were run, in the order of the registry."""
        return in_order((model for _, model in self.cells), MODELS)

    @property
    def known_models(self) -> list[str]:
        """The models that were run or could be."""
        trained = self.recipe != NO_RECIPE
        runnable = [name for name, model in MODELS.items() if model.trained == trained]
        return in_order([*runnable, *self.models], MODELS)

    def of(self, model: str) -> dict[str, CellRuns]:
        """The runs of a model, by data set."""
        return {dataset: runs for (dataset, other), runs in self.cells.items() if other == model}

    def with_others(self, others: Results) -> Results:
        """Add other results on the same data sets, to compare all of them."""
        datasets = {dataset for dataset, _ in self.cells}
        added = {place: runs for place, runs in others.cells.items() if place[0] in datasets}
        return Results(self.recipe, {**self.cells, **added})

    def scores(self) -> Scores:
        """Our accuracies as scores."""
        accuracies: dict[str, dict[str, float]] = defaultdict(dict)
        for (dataset, model), runs in self.cells.items():
            accuracies[dataset][model] = runs.accuracy
        return Scores.from_dict(
            accuracies, self.models, [name for name in self.datasets if name in accuracies]
        )


def summarize(rows: Sequence[Row], recipe: str) -> Results:
    """Group the finished cells of a recipe."""
    groups = grouped([row for row in rows if row.recipe == recipe], "dataset", "model")
    return Results(recipe, {(place[0], place[1]): CellRuns(group) for place, group in groups.items()})


def published(dataset: str, model: str) -> float | None:
    """The accuracy in the paper, or None if it has none."""
    score = ACCURACY.get(dataset, {}).get(published_name(model))
    return None if score is None else score.mean


def published_probabilities(left: str, right: str) -> SignedRankProbabilities | None:
    """The probabilities of the paper's signed-rank test of two models, or None if it has none."""
    return SIGNED_RANK.get((published_name(left), published_name(right)))


def published_name(model: str) -> str:
    """The name of a model in the paper, empty if it is not there."""
    return (MODELS[model].published if model in MODELS else None) or ""


def published_scores(datasets: Sequence[str], models: Sequence[str]) -> Scores:
    """The paper's accuracies by our names."""
    accuracies = {
        dataset: {model: value for model in models if (value := published(dataset, model)) is not None}
        for dataset in datasets
    }
    return Scores.from_dict(accuracies, models, datasets)


def label(model: str) -> str:
    """The name of a model on a page."""
    return MODELS[model].label if model in MODELS else model
