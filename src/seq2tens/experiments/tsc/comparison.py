"""Our runs by the paper's recipe beside the authors' own, run by run."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from seq2tens.experiments.report.runs import known
from seq2tens.experiments.report.statistics import permutation_test
from seq2tens.experiments.report.tables import NONE, Entry, Score, Table, count
from seq2tens.experiments.tsc.published_runs import RUNS, PublishedRun
from seq2tens.experiments.tsc.results import CellRuns, Results, label, published_name
from seq2tens.experiments.tsc.table import MASKED, PUBLISHED

# The authors' accuracies are known to so many digits.
DIGITS = 4


def single_runs(all_results: Sequence[Results]) -> Table | None:
    """Every cell of these recipes that the authors have run, too; None where there is none yet."""
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
