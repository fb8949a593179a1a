"""Comparisons of our runs with the authors' single runs, and with results of later work on other splits."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from seq2tens.experiments.mortality.models import MODELS
from seq2tens.experiments.mortality.published import LATER, RUNS, PublishedRuns, Range
from seq2tens.experiments.mortality.table import EPOCHS, MortalityRow
from seq2tens.experiments.report.runs import Runs, grouped
from seq2tens.experiments.report.statistics import permutation_test
from seq2tens.experiments.report.tables import NONE, Entry, Score, Table, count

RowRuns = Runs[MortalityRow]


def single_runs(rows: Sequence[MortalityRow]) -> Table | None:
    """Models with the published settings, compared with the authors' runs; None if there are none."""
    chosen = [row for row in _whole(rows) if row.split == 0 and row.settings == "published"]
    lines = [
        (Entry(MODELS[model].label), Entry(recipe), *_compared(Runs(rows), theirs))
        for (model, recipe), rows in grouped(chosen, "model", "recipe").items()
        if (theirs := RUNS.get(model))
    ]
    compared = [f"{title}{suffix}" for title in ("AUPRC", "AUROC") for suffix in ("", ", their range")]
    header = ("model", "recipe", "runs", "accuracy", "their range", "p", *compared, "epochs", "best epochs")
    notes = (
        "Means of our runs; a star where the mean lies in the range of the authors' five runs. p is that of "
        "an exact two-sided permutation test of equal mean accuracies; of the other measures only ranges are "
        "known. Epochs are ranges, ours and after a slash theirs.",
    )
    return (
        Table("single-runs", "Our runs and the authors'", header, tuple(lines), notes=notes)
        if lines
        else None
    )


def later_splits(rows: Sequence[MortalityRow]) -> Table | None:
    """AUROC and AUPRC on the five splits of later work, ours and reported ones; None if nothing was run."""
    chosen = [row for row in _whole(rows) if row.split > 0]
    if not chosen:
        return None
    ours = [
        (Entry(MODELS[model].label), Entry(f"ours, {recipe}, {settings}"), *_later(Runs(rows)))
        for (model, recipe, settings), rows in grouped(chosen, "model", "recipe", "settings").items()
    ]
    theirs = [
        (Entry(name), Entry("reported"), count(5), *(_percent(score) for score in scores))
        for name, scores in LATER.items()
    ]
    header = ("model", "origin", "splits", "AUROC", "AUPRC")
    notes = (
        "Splits of Raindrop (9590 / 1199 / 1199 stays). Mean ± standard deviation, over runs. Our settings "
        "are those that the paper chose on its own split.",
    )
    return Table("later", "Test set, five splits of later work", header, (*ours, *theirs), notes=notes)


def _whole(rows: Iterable[MortalityRow]) -> list[MortalityRow]:
    return [row for row in rows if row.purpose == "final" and row.epoch_limit >= EPOCHS]


def _compared(runs: RowRuns, theirs: PublishedRuns) -> tuple[Entry, ...]:
    accuracies = theirs.accuracies
    p = permutation_test([row.test_accuracy or 0.0 for row in runs.rows], accuracies)
    ranges = {
        "accuracy": Range(min(accuracies), max(accuracies)),
        "auprc": theirs.auprc,
        "auroc": theirs.auroc,
    }
    scores = {name: _inside(runs, name, bounds) for name, bounds in ranges.items()}
    return (
        count(len(runs.rows)),
        *scores["accuracy"],
        Entry(f"{p:.3f}", p),
        *scores["auprc"],
        *scores["auroc"],
        _epochs([row.epochs for row in runs.rows], theirs.epochs),
        _epochs([row.best_epoch for row in runs.rows], theirs.best_epochs),
    )


def _inside(runs: RowRuns, measure: str, bounds: Range) -> tuple[Entry, Entry]:
    """Our mean, with a star if it is in their range, and the range, of which three digits are known."""
    entry = runs.score(f"test_{measure}")
    star = " *" if entry.value is not None and bounds.low <= round(entry.value, 3) <= bounds.high else ""
    return Entry(entry.text + star, entry.value), Entry(f"{bounds.low:.3f} to {bounds.high:.3f}")


def _epochs(ours: Sequence[int], theirs: tuple[int, int] | None) -> Entry:
    known = NONE if theirs is None else f"{theirs[0]} to {theirs[1]}"
    return Entry(f"{min(ours)} to {max(ours)} / {known}", statistics.fmean(ours))


def _later(runs: RowRuns) -> tuple[Entry, ...]:
    n_splits = len({row.split for row in runs.rows})
    return count(n_splits), runs.score("test_auroc"), runs.score("test_auprc")


def _percent(score: Score) -> Entry:
    """Format a reported score like ours."""
    spread = f" ± {score.std:.3f}" if score.std else ""
    return Entry(f"{score.mean:.3f}{spread}", score.mean)
