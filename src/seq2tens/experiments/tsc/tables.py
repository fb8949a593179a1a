"""Tables of the classification experiment."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from seq2tens.experiments.report.runs import mean_of
from seq2tens.experiments.report.statistics import Posterior, Scores, mean_ranks
from seq2tens.experiments.report.tables import (
    HIGHER,
    LOWER,
    NONE,
    NOT_RUN,
    Entry,
    Table,
    count,
    number,
    signed,
)
from seq2tens.experiments.tsc.published import DATA_REMARKS, DATASETS
from seq2tens.experiments.tsc.results import (
    CellRuns,
    Results,
    label,
    published,
    published_probabilities,
    published_scores,
)

# A larger difference from the published mean needs an explanation.
LARGE_DIFFERENCE = 0.02
DAGGER = "†"
COSTS = ("fit, s", "predict, s", "epochs", "parameters", "peak MiB")
PARTS = ("fit", "predict")
# The paper's claim: the LS2T block does not make the FCN worse.
CLAIMS = (("fcn64-ls2t64-3", "fcn128"), ("fcn128-ls2t64-3", "fcn128"))


def accuracy(results: Results, models: Sequence[str]) -> Table:
    """Data sets by models: mean ± standard deviation (seeds), compared with the published mean."""
    changed = _data_remarks(results)
    rows = [
        (
            Entry(dataset + (f" {DAGGER}" if dataset in changed else "")),
            *(accuracy_entry(results.cells.get((dataset, model)), dataset, model) for model in models),
        )
        for dataset in results.datasets
    ]
    means = [_mean_accuracy(results.of(model), model) for model in models]
    notes = ["Mean of the runs ± their standard deviation (how many runs); below it the paper's mean."]
    notes += [f"{DAGGER} {dataset}: {text}." for dataset, text in changed.items()]
    return Table(
        f"accuracy-{results.slug}",
        f"Test accuracy, {results.title}",
        ("data set", *map(label, models)),
        tuple(rows),
        (Entry("mean (data sets)"), *means),
        tuple(notes),
        main=True,
    )


def accuracy_entry(runs: CellRuns | None, dataset: str, model: str) -> Entry:
    """Our accuracy with its standard deviation, compared with the published one."""
    paper = published(dataset, model)
    if runs is None:
        return Entry(NOT_RUN, published=paper)
    text = runs.score("accuracy").text + (f" ({len(runs.rows)})" if len(runs.rows) > 1 else "")
    return Entry(text, runs.accuracy, paper, far=LARGE_DIFFERENCE, better=HIGHER)


def _mean_accuracy(by_dataset: dict[str, CellRuns], model: str) -> Entry:
    """The mean over the data sets that were run, compared with the published mean over the same ones."""
    if not by_dataset:
        return Entry(NOT_RUN)
    mean = statistics.fmean(runs.accuracy for runs in by_dataset.values())
    return Entry(f"{mean:.3f} ({len(by_dataset)})", mean, _mean_published(by_dataset, model), better=HIGHER)


def _mean_published(datasets: Iterable[str], model: str) -> float | None:
    """The published mean accuracy, or None if the paper has no result on one of the data sets."""
    accuracies = [published(dataset, model) for dataset in datasets]
    return None if None in accuracies else mean_of(accuracies)


def _data_remarks(results: Results) -> dict[str, str]:
    """Remarks on data sets that differ, or may differ, from those of the paper."""
    remarks = {}
    for (dataset, _), runs in results.cells.items():
        sizes = runs.rows[0].n_train, runs.rows[0].n_test
        facts = DATASETS.get(dataset)
        if facts is not None and sizes != (facts.n_train, facts.n_test):
            remarks[dataset] = (
                f"partial, trained on {sizes[0]} sequences and tested on {sizes[1]}, "
                f"in the paper {facts.n_train} and {facts.n_test}"
            )
        elif dataset in DATA_REMARKS:
            remarks[dataset] = DATA_REMARKS[dataset]
    return remarks


def large_differences(all_results: Sequence[Results]) -> Table:
    """Cells off the published mean by more than `LARGE_DIFFERENCE`, the largest difference first."""
    rows = [
        (Entry(dataset), Entry(label(model)), Entry(results.recipe), accuracy_entry(runs, dataset, model))
        for results in all_results
        for (dataset, model), runs in results.cells.items()
    ]
    far = sorted((row for row in rows if row[3].is_far), key=lambda row: -abs(row[3].change or 0))
    caption = f"Accuracies off the published mean by more than {LARGE_DIFFERENCE}"
    return Table("far-off", caption, ("data set", "model", "recipe", "accuracy"), tuple(far))


def claim(all_results: Sequence[Results]) -> Table | None:
    """Compare FCN-LS2T with FCN on common data sets; None if there are none yet."""
    pairs = [(results, pair) for results in all_results for pair in CLAIMS]
    rows = [row for results, pair in pairs if (row := _claim_row(results, pair))]
    compared = ("with LS2T", "without", "difference", "in the paper")
    header = ("models", "recipe", "data sets", *compared, "parameters")
    notes = (
        "Mean accuracies over the data sets that both have. Parameters: the mean number of the first model "
        "as a share of the second's, heads included.",
    )
    return Table("claim", "Does the LS2T block help?", header, tuple(rows), notes=notes) if rows else None


def _claim_row(results: Results, models: tuple[str, str]) -> tuple[Entry, ...]:
    """The row that compares a model with the one it extends; empty if they have no common data set."""
    both = [results.of(model) for model in models]
    shared = [dataset for dataset in both[0] if dataset in both[1]]
    if not shared:
        return ()
    means = [statistics.fmean(runs[name].accuracy for name in shared) for runs in both]
    paper = [_mean_published(shared, model) for model in models]
    sizes = [mean_of(runs[name].mean("parameters") for name in shared) for runs in both]
    ratio = sizes[0] / sizes[1] if sizes[0] and sizes[1] else None
    return (
        Entry(", ".join(map(label, models))),
        Entry(results.recipe),
        count(len(shared)),
        *(
            Entry(f"{mean:.4f}", mean, published, better=HIGHER)
            for mean, published in zip(means, paper, strict=True)
        ),
        _difference(means, 4),
        _difference(paper),
        Entry(NONE) if ratio is None else Entry(f"{ratio:.0%}", ratio),
    )


def _difference(pair: Sequence[float | None], digits: int = 3) -> Entry:
    one, other = pair
    return Entry(NONE) if one is None or other is None else Entry(signed(one - other, digits), one - other)


def rank_table(scores: Scores, results: Results) -> Table:
    """Mean ranks among all models, and among the paper's, compared with the published ones."""
    paper = published_scores(scores.datasets, scores.models)
    shared = paper.complete()
    ours = mean_ranks(scores)
    ours_shared = mean_ranks(scores.part(shared.datasets, shared.models))
    theirs = mean_ranks(shared)
    rows = [
        (
            Entry(label(model)),
            number(ours[model], 2),
            Entry(f"{ours_shared[model]:.2f}", ours_shared[model], theirs[model], digits=2, better=LOWER)
            if model in theirs
            else Entry(NONE),
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
    """Probabilities of the signed-rank test, compared with the paper's."""
    rows = []
    for posterior in posteriors:
        theirs = published_probabilities(posterior.left, posterior.right) or (None, None, None)
        outcomes = list(zip(posterior.probabilities, theirs, (LOWER, 0, HIGHER), strict=True))
        rows.append(
            (
                Entry(label(posterior.right)),
                Entry(label(posterior.left)),
                count(posterior.n_datasets),
                *(
                    Entry(f"{ours:.2f}", ours, paper, digits=2, better=better)
                    for ours, paper, better in reversed(outcomes)
                ),
            )
        )
    header = ("model", "against", "data sets", "better", "equivalent", "worse")
    caption = f"Bayesian signed-rank test, {results.title}"
    notes = (
        "Probabilities that the model is better, equivalent (accuracies differ by at most 0.001) or worse, "
        "over the data sets that both have. The paper's are those of its sixteen data sets.",
    )
    return Table(f"signed-rank-{results.slug}", caption, header, tuple(rows), notes=notes)


def cost(all_results: Sequence[Results]) -> Table:
    """Time and memory of each model over the data sets on which it was run."""
    rows = [
        (Entry(label(model)), Entry(results.recipe), *_totals(list(results.of(model).values())))
        for results in all_results
        for model in results.models
    ]
    header = ("model", "recipe", "data sets", "runs", *COSTS)
    notes = (
        "Seconds are sums over data sets of the means over runs, without what is compiled on first use; "
        "epochs and parameters (head included) are means; memory is the largest of the process, libraries "
        "included.",
    )
    return Table("cost", "Time and memory", header, tuple(rows), notes=notes)


def _totals(cells: Sequence[CellRuns]) -> tuple[Entry, ...]:
    return (
        count(len(cells)),
        count(sum(len(runs.rows) for runs in cells)),
        *(number(sum(runs.required_mean(f"{part}_seconds") for runs in cells), 1) for part in PARTS),
        *(number(mean_of(runs.mean(column) for runs in cells)) for column in ("epochs", "parameters")),
        number(max(runs.largest("peak_mib") for runs in cells)),
    )


def every_cell(all_results: Sequence[Results]) -> Table:
    """Each data set, model and recipe that was run."""
    rows = [
        (
            Entry(dataset),
            Entry(label(model)),
            Entry(results.recipe),
            accuracy_entry(runs, dataset, model),
            *_totals([runs])[2:],
            count(runs.largest("threads")),
        )
        for results in all_results
        for (dataset, model), runs in sorted(results.cells.items())
    ]
    header = ("data set", "model", "recipe", "accuracy", *COSTS, "threads")
    return Table("cells", "Every cell", header, tuple(rows))


def seconds(results: Results) -> Table:
    """Data sets by models: seconds of fit + predict."""
    rows = [
        (Entry(dataset), *(_both_seconds(results.cells.get((dataset, model))) for model in results.models))
        for dataset in results.datasets
        if any((dataset, model) in results.cells for model in results.models)
    ]
    caption = f"Seconds, fit + predict, {results.title}"
    return Table(f"seconds-{results.slug}", caption, ("data set", *map(label, results.models)), tuple(rows))


def _both_seconds(runs: CellRuns | None) -> Entry:
    if runs is None:
        return Entry(NOT_RUN)
    fit, predict = (runs.required_mean(f"{part}_seconds") for part in PARTS)
    return Entry(f"{fit:.1f} + {predict:.1f}", fit + predict)
