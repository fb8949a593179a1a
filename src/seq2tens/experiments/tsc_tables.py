"""Tables of the classification experiment."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from seq2tens.experiments.formats import NONE, NOT_RUN, Cell, Table, count, signed
from seq2tens.experiments.published import DATASETS
from seq2tens.experiments.statistics import Posterior, Scores, mean_ranks
from seq2tens.experiments.summary import (
    Outcome,
    Results,
    label,
    mean_of,
    published,
    published_probabilities,
    published_scores,
)

# A mean that is further off the published one wants an explanation.
FAR = 0.02
DAGGER = "†"
# The paper's claim: with the block these are at least as good as without it.
CLAIMS = (("fcn64-ls2t64-3", "fcn128"), ("fcn128-ls2t64-3", "fcn128"))


def accuracy(results: Results, models: Sequence[str]) -> Table:
    """Data sets by models: mean ± standard deviation (seeds), beside the published mean."""
    changed = _other_halves(results)
    rows = [
        (
            Cell(dataset + (f" {DAGGER}" if dataset in changed else "")),
            *(accuracy_cell(results.cells.get((dataset, model)), dataset, model) for model in models),
        )
        for dataset in results.datasets
    ]
    means = [_mean_accuracy(results.of(model), model) for model in models]
    notes = ["Mean of the runs ± their standard deviation (how many runs); below it the paper's mean."]
    notes += [f"{DAGGER} {text}." for text in changed.values()]
    return Table(
        f"accuracy-{results.slug}",
        f"Test accuracy, {results.title}",
        ("data set", *map(label, models)),
        tuple(rows),
        (Cell("mean (data sets)"), *means),
        tuple(notes),
    )


def accuracy_cell(outcome: Outcome | None, dataset: str, model: str) -> Cell:
    """Our accuracy with its spread, beside the published one."""
    beside = published(dataset, model)
    if outcome is None:
        return Cell(NOT_RUN, published=beside)
    text = f"{outcome.accuracy:.3f}"
    if outcome.spread is not None:
        text += f" ± {outcome.spread:.3f} ({len(outcome.rows)})"
    return Cell(text, outcome.accuracy, beside, far=FAR)


def _mean_accuracy(found: dict[str, Outcome], model: str) -> Cell:
    """Over the data sets that were run; the published mean is that of the same ones."""
    if not found:
        return Cell(NOT_RUN)
    mean = statistics.fmean(outcome.accuracy for outcome in found.values())
    return Cell(f"{mean:.3f} ({len(found)})", mean, _mean_published(found, model))


def _mean_published(datasets: Iterable[str], model: str) -> float | None:
    """None where the paper has no result on one of them."""
    found = [published(dataset, model) for dataset in datasets]
    return None if None in found else mean_of(found)


def _other_halves(results: Results) -> dict[str, str]:
    """Data sets whose halves have other sizes than in the paper, with a sentence about them."""
    found = {}
    for (dataset, _), outcome in results.cells.items():
        if (facts := DATASETS.get(dataset)) is not None:
            sizes = outcome.rows[0].n_train, outcome.rows[0].n_test
            if sizes != (facts.n_train, facts.n_test):
                found[dataset] = (
                    f"{dataset}: trained on {sizes[0]} sequences and tested on {sizes[1]}, "
                    f"in the paper {facts.n_train} and {facts.n_test}"
                )
    return found


def far_off(all_results: Sequence[Results]) -> Table:
    """Cells that differ from the published mean by more than `FAR`, the largest difference first."""
    found = []
    for results in all_results:
        for (dataset, model), outcome in results.cells.items():
            cell = accuracy_cell(outcome, dataset, model)
            if cell.is_far:
                found.append((Cell(dataset), Cell(label(model)), Cell(results.recipe), cell))
    found.sort(key=lambda row: -abs(row[3].change or 0))
    caption = f"Accuracies off the published mean by more than {FAR}"
    return Table("far-off", caption, ("data set", "model", "recipe", "accuracy"), tuple(found))


def claim(all_results: Sequence[Results]) -> Table | None:
    """FCN-LS2T against FCN on the data sets that both have; None where there is none yet."""
    rows = []
    for results in all_results:
        for ours, baseline in CLAIMS:
            one, other = results.of(ours), results.of(baseline)
            shared = [dataset for dataset in one if dataset in other]
            if shared:
                rows.append(_claim_row(results.recipe, ours, baseline, shared, one, other))
    compared = ("with LS2T", "without", "difference", "in the paper")
    header = ("models", "recipe", "data sets", *compared, "parameters")
    notes = (
        "Mean accuracies over the data sets that both have. Parameters: the mean number of the first model "
        "as a share of the second's, heads included.",
    )
    return Table("claim", "Does the LS2T block help?", header, tuple(rows), notes=notes) if rows else None


def _claim_row(
    recipe: str,
    ours: str,
    baseline: str,
    shared: list[str],
    one: dict[str, Outcome],
    other: dict[str, Outcome],
) -> tuple[Cell, ...]:
    means = [statistics.fmean(found[name].accuracy for name in shared) for found in (one, other)]
    paper = [_mean_published(shared, model) for model in (ours, baseline)]
    sizes = [mean_of(found[name].parameters for name in shared) for found in (one, other)]
    ratio = sizes[0] / sizes[1] if sizes[0] and sizes[1] else None
    return (
        Cell(f"{label(ours)}, {label(baseline)}"),
        Cell(recipe),
        count(len(shared)),
        Cell(f"{means[0]:.4f}", means[0], paper[0]),
        Cell(f"{means[1]:.4f}", means[1], paper[1]),
        Cell(signed(means[0] - means[1], 4), means[0] - means[1]),
        _difference(*paper),
        Cell(NONE) if ratio is None else Cell(f"{ratio:.0%}", ratio),
    )


def _difference(one: float | None, other: float | None) -> Cell:
    return Cell(NONE) if one is None or other is None else Cell(signed(one - other), one - other)


def rank_table(scores: Scores, results: Results) -> Table:
    """Mean ranks of models in scores without gaps: among all, and among the paper's beside its own."""
    paper = published_scores(scores.datasets, scores.models)
    shared = paper.complete()
    ours = mean_ranks(scores)
    ours_shared = mean_ranks(scores.part(shared.datasets, shared.models))
    theirs = mean_ranks(shared)
    rows = [
        (
            Cell(label(model)),
            Cell(f"{ours[model]:.2f}", ours[model]),
            Cell(f"{ours_shared[model]:.2f}", ours_shared[model], theirs[model], digits=2)
            if model in theirs
            else Cell(NONE),
        )
        for model in sorted(scores.models, key=ours.__getitem__)
    ]
    notes = (
        f"Over {', '.join(scores.datasets)}; 1 is best, ties share the mean of their ranks. The last column "
        f"ranks the models of the paper among themselves on {len(shared.datasets)} data sets, beside the "
        "ranks that follow from the paper's accuracies on the same ones.",
    )
    return Table(
        f"ranks-{results.slug}",
        f"Mean ranks, {results.title}",
        ("model", "mean rank", "among the paper's models"),
        tuple(rows),
        notes=notes,
    )


def probability_table(posteriors: Sequence[Posterior], results: Results) -> Table:
    """Probabilities of the signed-rank test, beside the paper's."""
    rows = []
    for posterior in posteriors:
        theirs = published_probabilities(posterior.left, posterior.right) or (None, None, None)
        pairs = list(zip(posterior.probabilities, theirs, strict=True))
        rows.append(
            (
                Cell(label(posterior.right)),
                Cell(label(posterior.left)),
                count(posterior.n_datasets),
                *(Cell(f"{ours:.2f}", ours, paper, digits=2) for ours, paper in reversed(pairs)),
            )
        )
    header = ("model", "against", "data sets", "better", "equivalent", "worse")
    caption = f"Bayesian signed-rank test, {results.title}"
    notes = (
        "Probabilities that the model is better, equivalent (accuracies differ by at most 0.001) or worse, "
        "over the data sets that both have. The paper's are those of its sixteen data sets.",
    )
    return Table(f"signed-rank-{results.slug}", caption, header, tuple(rows), notes=notes)
