"""The section of a report about the classification experiment; it reads results and never trains."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seq2tens.experiments.report import figures
from seq2tens.experiments.report.blocks import Block, Missing, Part, Picture, ReportOptions, Section
from seq2tens.experiments.report.runs import in_order, provenance
from seq2tens.experiments.report.statistics import ALPHA, ROPE, Posterior, Scores, ranking, signed_rank
from seq2tens.experiments.report.tables import NONE, Entry, Table, count, signed
from seq2tens.experiments.tsc import tables
from seq2tens.experiments.tsc.comparison import gains, padding, single_runs
from seq2tens.experiments.tsc.experiment import EXPERIMENT
from seq2tens.experiments.tsc.results import Results, label, published, published_scores, summarize
from seq2tens.experiments.tsc.table import NO_RECIPE, RECIPES, Row, grid
from seq2tens.experiments.tsc.tables import LARGE_DIFFERENCE

# The models of the paper's signed-rank test, and the one that they extend.
OURS, BASELINE = ("ls2t64-3", "fcn64-ls2t64-3", "fcn128-ls2t64-3"), "fcn128"
# The minimum number of common data sets for a test.
MIN_COMMON = 5
SEEDS = 5


@dataclass(frozen=True)
class _Finished:
    """All results: those of each recipe, and those of models without a recipe."""

    rows: Sequence[Row]
    trained: tuple[Results, ...]
    others: Results

    @property
    def all(self) -> tuple[Results, ...]:
        return (*self.trained, self.others)

    @property
    def compared(self) -> list[Results]:
        """Results to rank together: each recipe with the models that have none, or these models alone."""
        ranked = [results.with_others(self.others) for results in self.trained if results.cells]
        return ranked or [self.others]


def section(rows: Sequence[Row], **options: Any) -> Section:
    """The section about finished cells; `options` as in `ReportOptions`."""
    scope = ReportOptions(**options)
    recipes = in_order([*RECIPES, *(row.recipe for row in rows if row.recipe != NO_RECIPE)], RECIPES)
    trained = tuple(summarize(rows, recipe) for recipe in recipes)
    finished = _Finished(rows, trained, summarize(rows, NO_RECIPE))
    parts = [_overview(finished), _accuracies(finished, scope.details), _ranks(finished, scope.details)]
    if scope.details:
        parts += [_signed_ranks(finished, scope.samples), _distributions(finished)]
    parts += [_costs(finished, scope.details), provenance(rows, EXPERIMENT)]
    return Section(EXPERIMENT.name, "Time series classification", tuple(parts))


def _overview(finished: _Finished) -> Part:
    datasets, models = {row.dataset for row in finished.rows}, {row.model for row in finished.rows}
    runs = f"{len(finished.rows)} runs are finished, on {len(datasets)} data sets with {len(models)} models."
    claim = tables.claim(finished.trained)
    missing = Missing(
        "FCN-LS2T and FCN have no data set in common yet, so the paper's claim has not been tested."
    )
    return Part("Overview", (runs, *_differences(finished), claim or missing, _progress(finished)))


def _progress(finished: _Finished) -> Table:
    """The table of how much of the whole grid is finished."""
    names, sets = EXPERIMENT.models, EXPERIMENT.datasets
    grids = [grid(EXPERIMENT.name, sets, names, seeds=SEEDS, recipe=recipe) for recipe in RECIPES]
    whole = {cell.key: cell.recipe for cells in grids for cell in cells}
    rows = []
    for results in finished.all:
        done = [row for row in finished.rows if row.recipe == results.recipe]
        total = sum(recipe == results.recipe for recipe in whole.values())
        numbers = (len(results.models), len({row.dataset for row in done}), len(done))
        rows.append((Entry(results.title), *map(count, numbers), count(total) if total else Entry(NONE)))
    header = ("recipe", "models", "data sets", "runs", f"of, with {SEEDS} seeds")
    notes = ("What has not been run is shown as “not run”, in every table.",)
    return Table("progress", "How much has been run", header, tuple(rows), notes=notes)


def _differences(finished: _Finished) -> list[Block]:
    changes = [point.ours - point.published for results in finished.all for point in _points(results)]
    if not changes:
        return []
    far = len(tables.large_differences(finished.all).rows)
    return [
        f"{len(changes)} of our mean accuracies have a published one beside them. Ours less the published "
        f"one is {signed(statistics.fmean(changes))} on average, {signed(statistics.median(changes))} in the "
        f"median; off by more than {LARGE_DIFFERENCE}: {far}."
    ]


def _points(results: Results) -> list[figures.Point]:
    return [
        figures.Point(label(model), dataset, runs.accuracy, paper)
        for (dataset, model), runs in results.cells.items()
        if (paper := published(dataset, model)) is not None
    ]


def _accuracies(finished: _Finished, details: bool) -> Part:
    blocks: list[Block] = []
    for results in finished.all:
        blocks += _accuracy_table(results, details)
    trained = finished.trained
    compared = (single_runs(trained), padding(trained), gains(trained, tables.CLAIMS[0]))
    blocks += [table for table in compared if table is not None]
    far = tables.large_differences(finished.all)
    blocks.append(
        far if far.rows else f"No accuracy is off the published mean by more than {LARGE_DIFFERENCE}."
    )
    return Part("Accuracies", tuple(blocks))


def _accuracy_table(results: Results, details: bool) -> list[Block]:
    """The table with all models, or with those that were run and the names of the others."""
    if not results.cells:
        return [Missing(f"Nothing has been run yet: {results.title}.")]
    if details:
        return [tables.accuracy(results, results.known_models)]
    idle = [label(model) for model in results.known_models if model not in results.models]
    table = tables.accuracy(results, results.models)
    return [table, Missing(f"Not run yet: {', '.join(idle)}.")] if idle else [table]


def _ranks(finished: _Finished, details: bool) -> Part:
    blocks: list[Block] = []
    for results in finished.compared:
        scores = results.scores().complete()
        if min(scores.values.shape) < 2:
            blocks.append(Missing(f"Too little for ranks yet: {results.title}."))
            continue
        blocks.append(tables.rank_table(scores, results))
        if details:
            blocks += _diagrams(scores, results)
    return Part("Ranks", tuple(blocks))


def _diagrams(scores: Scores, results: Results) -> list[Block]:
    """Diagrams of critical differences for ours and for the paper's, on the same data sets and models."""
    drawn = [("ours", "our accuracies", scores)]
    paper = published_scores(scores.datasets, scores.models).complete()
    if min(paper.values.shape) >= 2:
        drawn.append(("paper", "the paper's accuracies on the same data sets", paper))
    return [
        Picture(
            f"critical-difference-{results.slug}-{name}",
            f"Mean ranks of {text}, {results.title}: {len(part.datasets)} data sets, {len(part.models)} "
            f"models. A bar joins models that Nemenyi's test (level {ALPHA}) does not tell apart.",
            figures.critical_difference_diagram(ranking(part), _labels(part)),
        )
        for name, text, part in drawn
    ]


def _labels(scores: Scores) -> dict[str, str]:
    return {model: label(model) for model in scores.models}


def _signed_ranks(finished: _Finished, samples: int) -> Part:
    blocks: list[Block] = []
    for results in finished.compared:
        posteriors = _posteriors(results.scores(), samples)
        placeholder = Missing(
            f"No LS2T network has {MIN_COMMON} data sets in common with another model yet: {results.title}."
        )
        blocks += _posterior_blocks(posteriors, results) if posteriors else [placeholder]
    return Part("Signed-rank test", tuple(blocks))


def _posteriors(scores: Scores, samples: int) -> list[Posterior]:
    """Test each LS2T network against every other model with enough common data sets."""
    pairs = [
        (left, right)
        for right in OURS
        for left in scores.models
        if right in scores.models and left != right and scores.in_common(left, right) >= MIN_COMMON
    ]
    return [signed_rank(scores, left, right, samples=samples) for left, right in pairs]


def _posterior_blocks(posteriors: list[Posterior], results: Results) -> list[Block]:
    labels = _labels(results.scores())
    bars = Picture(
        f"signed-rank-bars-{results.slug}",
        f"Bayesian signed-rank test, {results.title}: probabilities that a model is better than the one at "
        f"the left (the number at the right), equivalent (within {ROPE}) or worse.",
        figures.posterior_bars(posteriors, labels),
    )
    blocks: list[Block] = [tables.probability_table(posteriors, results), bars]
    if with_baseline := [posterior for posterior in posteriors if posterior.left == BASELINE]:
        caption = (
            f"Draws from the posterior against {label(BASELINE)}, {results.title}: the nearer to a corner, "
            "the more certain; the lines part the regions in which one of the three is the most likely."
        )
        blocks.append(Picture(f"posterior-{results.slug}", caption, figures.simplex(with_baseline, labels)))
    return blocks


def _distributions(finished: _Finished) -> Part:
    blocks: list[Block] = []
    for results in finished.compared:
        caption = f"Accuracies over data sets, {results.title}: quartiles, median and range."
        blocks.append(Picture(f"accuracies-{results.slug}", caption, figures.boxes(*_by_model(results))))
        if points := _points(results):
            caption = (
                f"Our accuracies over the published ones, {results.title}; inside the band they differ by at "
                f"most {LARGE_DIFFERENCE}."
            )
            figure = figures.against_published(points, LARGE_DIFFERENCE)
            blocks.append(Picture(f"against-published-{results.slug}", caption, figure))
    return Part("Accuracies in figures", tuple(blocks))


def _by_model(results: Results) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Accuracies of each model over data sets: ours, and the paper's on the same ones."""
    by_model = {model: results.of(model) for model in results.models}
    ours = {label(model): [runs.accuracy for runs in scores.values()] for model, scores in by_model.items()}
    paper = {
        label(model): [value for name in scores if (value := published(name, model)) is not None]
        for model, scores in by_model.items()
    }
    return ours, paper


def _costs(finished: _Finished, details: bool) -> Part:
    measured = [results for results in finished.all if results.cells]
    blocks = [tables.cost(measured), *map(tables.seconds, measured)]
    return Part("Time and memory", (*blocks, *([tables.every_cell(measured)] if details else [])))
