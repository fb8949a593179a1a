"""Groups of runs that differ only in their seed, and the tables and texts shared by all experiments."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from seq2tens.experiments.core.registry import Experiment
from seq2tens.experiments.core.rows import AnyRow
from seq2tens.experiments.report.blocks import Part
from seq2tens.experiments.report.tables import HIGHER, NONE, Entry, Score, Table, count, number, signed

R = TypeVar("R", bound=AnyRow)
COSTS = ("parameters", "peak MiB", "threads")


@dataclass(frozen=True)
class Runs(Generic[R]):
    """Rows that differ only in their seed; a column may be empty in some of them."""

    rows: tuple[R, ...]

    def mean(self, column: str) -> float | None:
        """The mean over runs, or None if it was not measured."""
        return mean_of(getattr(row, column) for row in self.rows)

    def required_mean(self, column: str) -> float:
        """The mean over runs of a column that is never empty."""
        return statistics.fmean(getattr(row, column) for row in self.rows)

    def spread(self, column: str) -> float | None:
        """The standard deviation over runs, or None for a single run."""
        values = known(getattr(row, column) for row in self.rows)
        return statistics.stdev(values) if len(values) > 1 else None

    def largest(self, column: str) -> Any:
        """The largest value of all runs."""
        return max(getattr(row, column) for row in self.rows)

    def score(self, column: str, paper: Score | None = None, better: int = HIGHER) -> Entry:
        """Mean ± standard deviation, compared with the paper's; `better` as in `Entry`."""
        mean, spread = self.mean(column), self.spread(column)
        if mean is None:
            return Entry(NONE)
        text = f"{mean:.3f}" + ("" if spread is None else f" ± {spread:.3f}")
        if paper is None:
            return Entry(text, mean)
        return Entry(text, mean, paper.mean, published_spread=paper.std, better=better)


def known(values: Iterable[float | None]) -> list[float]:
    """The values that are not None."""
    return [value for value in values if value is not None]


def mean_of(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are not None, or None if there are none."""
    present = known(values)
    return statistics.fmean(present) if present else None


def grouped(rows: Iterable[R], *columns: str) -> dict[tuple[Any, ...], tuple[R, ...]]:
    """Group rows by their values in these columns, in the order of first occurrence."""
    groups: dict[tuple[Any, ...], list[R]] = defaultdict(list)
    for row in rows:
        groups[tuple(getattr(row, name) for name in columns)].append(row)
    return {values: tuple(group) for values, group in groups.items()}


def in_order(names: Iterable[str], registry: Iterable[str]) -> list[str]:
    """Unique names in the order of a registry; unknown ones come last."""
    order = {name: i for i, name in enumerate(registry)}
    return sorted(dict.fromkeys(names), key=lambda name: order.get(name, len(order)))


def difference(title: str, ours: Sequence[float | None], paper: Sequence[Score | None]) -> str:
    """The first of two means minus the second, for ours and for the paper's."""
    (a, b), (p, q) = ours, paper
    assert a is not None
    assert b is not None
    published = p.mean - q.mean if p and q else 0.0
    return f"{title} {signed(a - b)} (in the paper {signed(published)})"


def costs(
    runs: Sequence[tuple[tuple[str, str], Runs[Any]]], names: tuple[str, str], test: str, note: str = ""
) -> Part:
    """Time and memory of runs; two texts name each of them, and `test` is the heading of the test time."""
    rows = [(*map(Entry, texts), *_costs(group)) for texts, group in runs]
    header = (*names, "runs", "epochs", "s per epoch", "training, min", test, *COSTS)
    notes = (
        f"Means over runs, for an epoch of their medians{note}. Other work on the machine is counted too. "
        "Memory is the largest of the process, data and libraries included.",
    )
    return Part("Time and memory", (Table("cost", "Time and memory", header, tuple(rows), notes=notes),))


def _costs(group: Runs[Any]) -> tuple[Entry, ...]:
    epochs, seconds = group.mean("epochs"), group.mean("fit_seconds")
    return (
        count(len(group.rows)),
        number(epochs),
        number(group.mean("epoch_seconds"), 1),
        number(None if epochs is None or seconds is None else seconds / 60, 1),
        number(group.mean("predict_seconds"), 1),
        number(group.mean("parameters")),
        number(group.largest("peak_mib")),
        count(group.largest("threads")),
    )


def provenance(rows: Sequence[AnyRow], experiment: Experiment) -> Part:
    """Which code and libraries the results come from."""
    lines = []
    for (commit, versions), group in grouped(rows, "commit", "versions").items():
        dates = sorted(row.finished for row in group)
        first, last = (Entry(date.replace("T", " ").replace("+00:00", "")) for date in (dates[0], dates[-1]))
        lines.append((Entry(commit or NONE), count(len(group)), first, last, Entry(versions)))
    notes = ("A + marks a source tree with changes that were not committed.",)
    header = ("commit", "runs", "first finished (UTC)", "last finished (UTC)", "versions")
    table = Table("provenance", "Commits and versions", header, tuple(lines), notes=notes)
    usage = f"`{experiment.command}` adds runs to the table, and skips those that are there."
    return Part("Where the numbers come from", (usage, table))
