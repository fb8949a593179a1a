"""Tables of what the classification experiment took."""

from __future__ import annotations

from collections.abc import Sequence

from seq2tens.experiments.report.runs import mean_of
from seq2tens.experiments.report.tables import NOT_RUN, Cell, Table, count, number
from seq2tens.experiments.tsc.summary import CellRuns, Results, label
from seq2tens.experiments.tsc.tables import accuracy_cell

COSTS = ("fit, s", "predict, s", "epochs", "parameters", "peak MiB")
PARTS = ("fit", "predict")


def cost(all_results: Sequence[Results]) -> Table:
    """What each model took, over the data sets on which it was run."""
    rows = [
        (Cell(label(model)), Cell(results.recipe), *_totals(list(results.of(model).values())))
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


def _totals(cells: Sequence[CellRuns]) -> tuple[Cell, ...]:
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
            Cell(dataset),
            Cell(label(model)),
            Cell(results.recipe),
            accuracy_cell(runs, dataset, model),
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
        (Cell(dataset), *(_both_seconds(results.cells.get((dataset, model))) for model in results.models))
        for dataset in results.datasets
        if any((dataset, model) in results.cells for model in results.models)
    ]
    caption = f"Seconds, fit + predict, {results.title}"
    return Table(f"seconds-{results.slug}", caption, ("data set", *map(label, results.models)), tuple(rows))


def _both_seconds(runs: CellRuns | None) -> Cell:
    if runs is None:
        return Cell(NOT_RUN)
    fit, predict = (runs.required_mean(f"{part}_seconds") for part in PARTS)
    return Cell(f"{fit:.1f} + {predict:.1f}", fit + predict)
