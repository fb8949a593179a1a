"""Rows of the results: one per finished fit."""

from __future__ import annotations

from math import nan
from pathlib import Path
from typing import NamedTuple

from benchmarks import csv_rows
from benchmarks.imputation.data import Hide

RESULTS = Path("results/imputation_holdout.csv")


class Row(NamedTuple):
    """One finished fit.

    `limit` and `epochs` are 0 unless the run was shortened. Errors and widths of intervals are in training
    standard deviations of the channel. Columns that an earlier version did not measure are NaN. `cpu_seconds`
    are those of the fit on all threads, without other load. `stopped_after` is the time limit in seconds, if
    it was reached.
    """

    dataset: str
    model: str
    fraction: float
    seed: int
    limit: int
    epochs: int
    mae: float
    mse: float
    fit_seconds: float
    fill_seconds: float
    n_train: int
    n_test: int
    n_scored: int
    threads: int
    pattern: str = "points"
    coverage50: float = nan
    coverage90: float = nan
    width90: float = nan
    cpu_seconds: float = nan
    stopped_after: int = 0

    @property
    def cell(self) -> Cell:
        """The cell of this row."""
        return Cell(
            self.dataset, self.model, Hide(self.pattern, self.fraction), self.seed, self.limit, self.epochs
        )  # type: ignore[arg-type]


class Cell(NamedTuple):
    """A cell of the comparison; `limit` and `epochs` are 0 except in a trial."""

    dataset: str
    model: str
    hide: Hide
    seed: int
    limit: int = 0
    epochs: int = 0


def append(row: Row, results: Path) -> None:
    """Append a row and print it."""
    csv_rows.append([row], results, digits=".5g")
    scores = f"MAE {row.mae:.3f}  MSE {row.mse:.3f}  90 % cover {row.coverage90:.1%}  {row.fit_seconds:.1f} s"
    print(row.dataset, row.model, row.cell.hide, "seed", row.seed, scores, flush=True)


def read(results: Path) -> list[Row]:
    """Read all finished fits; of repeated ones, the last."""
    return list({row.cell: row for row in csv_rows.read(Row, results)}.values())
