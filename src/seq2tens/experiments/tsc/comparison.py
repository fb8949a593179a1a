"""Comparisons of our runs by the paper's recipe with the authors' single runs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from seq2tens.experiments.report.runs import known
from seq2tens.experiments.report.statistics import permutation_test
from seq2tens.experiments.report.tables import HIGHER, NONE, NOT_RUN, Entry, Score, Table, count, signed
from seq2tens.experiments.tsc.published import DATASETS
from seq2tens.experiments.tsc.published_runs import RUNS, PublishedRun
from seq2tens.experiments.tsc.results import CellRuns, Results, label, published, published_name
from seq2tens.experiments.tsc.table import MASKED, PUBLISHED

# The number of known digits of the authors' accuracies.
DIGITS = 4


def single_runs(all_results: Sequence[Results]) -> Table | None:
    """Every cell of the paper's recipes that the authors have run too; None if there is none yet."""
    rows = [
        (Entry(dataset), Entry(label(model)), Entry(results.recipe), *_compared(runs, theirs))
        for results in all_results
        if results.recipe in (PUBLISHED, MASKED)
        for (dataset, model), runs in sorted(results.cells.items())
        if (theirs := RUNS.get((dataset, published_name(model))))
    ]
    scores = ("accuracy", "their range", "inside", "p", "epochs", "lowest loss", "theirs")
    header = ("data set", "model", "recipe", "runs", *scores)
    notes = (
        "Accuracies and epochs are means; below them those of the authors' five runs, whose range is that of "
        "their accuracies, and “inside” says whether our mean lies in it. p is that of an exact two-sided "
        "permutation test of equal mean accuracies. Losses are medians of the lowest training loss.",
    )
    return (
        Table("single-runs", "Our runs and the authors'", header, tuple(rows), notes=notes) if rows else None
    )


def padding(all_results: Sequence[Results]) -> Table | None:
    """Compare cells that were run both with zeros in front and with masks; None if there is none yet."""
    cells = {results.recipe: results.cells for results in all_results}
    zeros, masks = (cells.get(recipe, {}) for recipe in (PUBLISHED, MASKED))
    rows = [
        (Entry(dataset), Entry(label(model)), *_padded(zeros[dataset, model], masks[dataset, model]))
        for dataset, model in sorted(zeros)
        if (dataset, model) in masks
    ]
    header = ("data set", "model", PUBLISHED, MASKED, "difference", "p")
    notes = (
        "The same training with zeros in front, which a network sees, and with masks, which hide the length; "
        "the difference is what the zeros add. How many runs stands in brackets, and p is that of the "
        "permutation test.",
    )
    return Table("padding", "Zeros in front, or masks", header, tuple(rows), notes=notes) if rows else None


def _padded(zeros: CellRuns, masks: CellRuns) -> tuple[Entry, ...]:
    p = permutation_test(*([row.accuracy for row in runs.rows] for runs in (zeros, masks)))
    texts = [f"{runs.score('accuracy').text} ({len(runs.rows)})" for runs in (zeros, masks)]
    paper = published(zeros.rows[0].dataset, zeros.rows[0].model)
    return (
        Entry(texts[0], zeros.accuracy, paper, better=HIGHER),
        Entry(texts[1], masks.accuracy),
        _signed(zeros.accuracy - masks.accuracy),
        Entry(f"{p:.3f}", p),
    )


def gains(all_results: Sequence[Results], pair: tuple[str, str]) -> Table | None:
    """By data set, the accuracy of the first model minus that of the second, largest published gain first.

    None if no recipe has both models on a data set.
    """
    run = [results for results in all_results if _gain_of(results, pair)]
    paper = {dataset: _published_gain(dataset, pair) for dataset in DATASETS}
    order = sorted(paper, key=lambda dataset: -(paper[dataset] or 0.0))
    rows = [
        (Entry(dataset), _signed(paper[dataset]), *(_signed(_gain_of(r, pair).get(dataset)) for r in run))
        for dataset in order
    ]
    caption = f"Where the gain is: {label(pair[0])} less {label(pair[1])}"
    header = ("data set", "in the paper", *(results.recipe for results in run))
    return Table("gains", caption, header, tuple(rows)) if run else None


def _gain_of(results: Results, pair: tuple[str, str]) -> dict[str, float]:
    one, other = (results.of(model) for model in pair)
    return {name: runs.accuracy - other[name].accuracy for name, runs in one.items() if name in other}


def _published_gain(dataset: str, pair: tuple[str, str]) -> float | None:
    one, other = (published(dataset, model) for model in pair)
    return None if one is None or other is None else one - other


def _signed(value: float | None) -> Entry:
    return Entry(NOT_RUN) if value is None else Entry(signed(value), value)


def _compared(runs: CellRuns, theirs: Sequence[PublishedRun]) -> tuple[Entry, ...]:
    ours = [round(row.accuracy, DIGITS) for row in runs.rows]
    accuracies = [run.accuracy for run in theirs]
    low, high = min(accuracies), max(accuracies)
    inside = low <= round(statistics.fmean(ours), DIGITS) <= high
    p = permutation_test(ours, accuracies)
    paper = Score(statistics.fmean(accuracies), statistics.stdev(accuracies))
    return (
        count(len(ours)),
        runs.score("accuracy", paper),
        Entry(f"{low:.4f} to {high:.4f}"),
        Entry("yes" if inside else "no"),
        Entry(f"{p:.3f}", p),
        _epochs(runs, theirs),
        _median_loss(known(row.lowest_train_loss for row in runs.rows)),
        _median_loss([run.lowest_train_loss for run in theirs]),
    )


def _epochs(runs: CellRuns, theirs: Sequence[PublishedRun]) -> Entry:
    mean = runs.required_mean("epochs")
    return Entry(f"{mean:.0f}", mean, statistics.fmean(run.epochs for run in theirs), digits=0)


def _median_loss(losses: Sequence[float]) -> Entry:
    if not losses:
        return Entry(NONE)
    median = statistics.median(losses)
    return Entry(f"{median:.1e}", median)
