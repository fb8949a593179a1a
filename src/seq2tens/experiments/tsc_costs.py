"""Tables of what the classification experiment took, and of where its numbers come from."""

from __future__ import annotations

from collections.abc import Sequence

from seq2tens.experiments.formats import NONE, NOT_RUN, Cell, Table, count
from seq2tens.experiments.rows import AnyRow
from seq2tens.experiments.summary import Outcome, Results, label, mean_of
from seq2tens.experiments.tsc_tables import accuracy_cell

COSTS = ("fit, s", "predict, s", "epochs", "parameters", "peak MiB")


def cost(all_results: Sequence[Results]) -> Table:
    """What each model took, over the data sets on which it was run."""
    rows = [
        _cost_row(results.recipe, model, list(results.of(model).values()))
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


def _cost_row(recipe: str, model: str, found: list[Outcome]) -> tuple[Cell, ...]:
    return (
        Cell(label(model)),
        Cell(recipe),
        count(len(found)),
        count(sum(len(outcome.rows) for outcome in found)),
        _seconds(sum(outcome.fit_seconds for outcome in found)),
        _seconds(sum(outcome.predict_seconds for outcome in found)),
        _number(mean_of(outcome.epochs for outcome in found)),
        _number(mean_of(outcome.parameters for outcome in found)),
        _number(max(outcome.peak_mib for outcome in found)),
    )


def every_cell(all_results: Sequence[Results]) -> Table:
    """Each data set, model and recipe that was run."""
    rows = [
        (
            Cell(dataset),
            Cell(label(model)),
            Cell(results.recipe),
            accuracy_cell(outcome, dataset, model),
            _seconds(outcome.fit_seconds),
            _seconds(outcome.predict_seconds),
            _number(outcome.epochs),
            _number(outcome.parameters),
            _number(outcome.peak_mib),
            count(max(row.threads for row in outcome.rows)),
        )
        for results in all_results
        for (dataset, model), outcome in sorted(results.cells.items())
    ]
    header = ("data set", "model", "recipe", "accuracy", *COSTS, "threads")
    return Table("cells", "Every cell", header, tuple(rows))


def seconds(results: Results) -> Table:
    """Data sets by models: seconds of fit + predict."""
    rows = [
        (Cell(dataset), *(_both_seconds(results.cells.get((dataset, model))) for model in results.models))
        for dataset in results.datasets
        if any((dataset, model) in results.cells for model in results.models)
    ]
    caption = f"Seconds, fit + predict, {results.title}"
    return Table(f"seconds-{results.slug}", caption, ("data set", *map(label, results.models)), tuple(rows))


def _both_seconds(outcome: Outcome | None) -> Cell:
    if outcome is None:
        return Cell(NOT_RUN)
    fit, predict = outcome.fit_seconds, outcome.predict_seconds
    return Cell(f"{fit:.1f} + {predict:.1f}", fit + predict)


def provenance(rows: Sequence[AnyRow]) -> Table:
    """Which code and libraries the results come from."""
    groups = dict.fromkeys((row.commit, row.versions) for row in rows)
    lines = []
    for commit, versions in groups:
        own = [row for row in rows if (row.commit, row.versions) == (commit, versions)]
        dates = sorted(row.finished for row in own)
        first, last = _date(dates[0]), _date(dates[-1])
        lines.append((Cell(commit or NONE), count(len(own)), first, last, Cell(versions)))
    notes = ("A + marks a source tree with changes that were not committed.",)
    header = ("commit", "runs", "first finished (UTC)", "last finished (UTC)", "versions")
    return Table("provenance", "Commits and versions", header, tuple(lines), notes=notes)


def _date(text: str) -> Cell:
    return Cell(text.replace("T", " ").replace("+00:00", ""))


def _number(number: float | None) -> Cell:
    return Cell(NONE) if number is None else Cell(f"{number:,.0f}", number)


def _seconds(number: float) -> Cell:
    return Cell(f"{number:,.1f}", number)
