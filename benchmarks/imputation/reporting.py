"""Tables and figures of the documentation, from our rows and published results."""

from __future__ import annotations

import csv
import statistics
from collections import Counter
from collections.abc import Callable
from functools import cache
from math import isnan
from pathlib import Path
from typing import NamedTuple

from benchmarks.charts import FIGURES, save
from benchmarks.imputation import pictures
from benchmarks.imputation.data import PROTOCOLS, Hide
from benchmarks.imputation.rows import RESULTS, Row, read
from benchmarks.imputation.running import MODELS, UNTRAINED
from benchmarks.pages import fill, markdown

PAGE = Path("docs/accuracy.md")
START, END = "<!-- imputation -->", "<!-- end of imputation -->"
# The names in TSI-Bench for what is hidden.
PATTERNS = {
    Hide("points", 0.1): "point01",
    Hide("points", 0.5): "point05",
    Hide("points", 0.9): "point09",
    Hide("blocks", 0.5): "block05",
}


class Published(NamedTuple):
    """A result of TSI-Bench (Du et al., 2024): mean and standard deviation over five runs."""

    pattern: str
    dataset: str
    method: str
    mae: float
    mae_sd: float


@cache
def published() -> tuple[Published, ...]:
    """The published results for data sets and models of our comparison."""
    with Path(__file__).with_name("published.csv").open(newline="") as file:
        return tuple(
            Published(*(row[name] for name in Published._fields[:3]), float(row["mae"]), float(row["mae_sd"]))
            for row in csv.DictReader(file)
        )


class Table:
    """The table of one data set: a row per model, a column for each way to hide."""

    def __init__(self, dataset: str, rows: list[Row]) -> None:
        self.dataset, self.rows = dataset, [row for row in rows if row.dataset == dataset]
        self.hidden = [
            hide for hide in PROTOCOLS[dataset].hidden if any(row.cell.hide == hide for row in self.rows)
        ]
        self.models = [name for name in MODELS if any(row.model == name for row in self.rows)]

    def of(self, model: str, hide: Hide) -> list[Row]:
        """The rows of all seeds of a cell."""
        return [row for row in self.rows if (row.model, row.cell.hide) == (model, hide)]

    def best(self, score: str) -> dict[Hide, str]:
        """The model with the lowest mean in each column in which networks were trained."""
        compared = {row.cell.hide for row in self.rows if row.model not in UNTRAINED}
        return {
            hide: min(
                (statistics.fmean(getattr(row, score) for row in rows), model)
                for model in self.models
                if (rows := self.of(model, hide))
            )[1]
            for hide in self.hidden
            if hide in compared
        }

    def errors(self, score: str) -> str:
        """The table of errors, the lowest of each column in bold, with published results below."""
        best = self.best(score)
        lines = [
            [model, *(_mean(self.of(model, hide), score, best.get(hide) == model) for hide in self.hidden)]
            for model in self.models
        ]
        if score == "mae":
            for line, model in zip(lines, self.models, strict=True):
                line.append(self._seconds(model))
            lines += self._published()
        seconds = ["seconds of a fit"] if score == "mae" else []
        return self._markdown([*map(str, self.hidden), *seconds], lines)

    def intervals(self) -> str:
        """The table of the coverage of 50 % and 90 % intervals, and the width of the latter."""
        models = [
            m for m in self.models if any(not isnan(row.coverage90) for row in self.rows if row.model == m)
        ]
        lines = [[model, *(_interval(self.of(model, hide)) for hide in self.hidden)] for model in models]
        return self._markdown([*map(str, self.hidden)], lines) if models else ""

    def _markdown(self, header: list[str], lines: list[list[str]]) -> str:
        sizes = {(row.n_train, row.n_test) for row in self.rows}
        counts = " or ".join(f"{train} to fit, {test} to fill" for train, test in sorted(sizes))
        return f"**{self.dataset}** ({counts})\n\n{markdown(['model', *header], lines)}\n"

    def _seconds(self, model: str) -> str:
        """The mean CPU seconds of a fit; wall-clock seconds in older rows."""
        rows = [row for row in self.rows if row.model == model]
        taken = [row.fit_seconds if isnan(row.cpu_seconds) else row.cpu_seconds for row in rows]
        return f"{statistics.fmean(taken):.1f}"

    def _published(self) -> list[list[str]]:
        name = PROTOCOLS[self.dataset].published
        figures = {(row.method, row.pattern): row for row in published() if row.dataset == name}
        return [
            [
                f"*{method}, published*",
                *(_figure(figures.get((method, PATTERNS.get(hide, "")))) for hide in self.hidden),
                "",
            ]
            for method in dict.fromkeys(method for method, _ in figures)
        ]


def _figure(row: Published | None) -> str:
    return "" if row is None else f"*{row.mae:.3f} ± {row.mae_sd:.3f}*"


def _mean(rows: list[Row], score: str, best: bool) -> str:
    if not rows:
        return ""
    values = [getattr(row, score) for row in rows]
    text = f"{statistics.fmean(values):.3f}"
    if len(values) > 1:
        text += f" ± {statistics.stdev(values):.3f} ({len(values)})"
    if any(row.stopped_after for row in rows):
        text += " †"
    return f"**{text}**" if best else text


def _interval(rows: list[Row]) -> str:
    rows = [row for row in rows if not isnan(row.coverage90)]
    if not rows:
        return ""
    inner, outer, width = (
        statistics.fmean(getattr(row, name) for row in rows)
        for name in ("coverage50", "coverage90", "width90")
    )
    return f"{100 * inner:.1f}, {100 * outer:.1f}; {width:.2f}"


def tables(rows: list[Row]) -> str:
    """Tables of errors and intervals by data set, model and what was hidden."""
    whole = [row for row in rows if not row.limit and not row.epochs]
    tables = [Table(dataset, whole) for dataset in PROTOCOLS if any(row.dataset == dataset for row in whole)]
    if not tables:
        return "Nothing has been measured yet.\n"
    parts: list[tuple[str, Callable[[Table], str]]] = [
        ("#### MAE, and seconds of a fit", lambda table: table.errors("mae")),
        ("#### MSE", lambda table: table.errors("mse")),
        ("#### Intervals: coverage of 50 % and of 90 %; mean width of 90 %", Table.intervals),
    ]
    wins = Counter(model for table in tables for model in table.best("mae").values()).most_common()
    lowest = f"Lowest MAE of {sum(count for _, count in wins)} columns: "
    lowest += ", ".join(f"{model} in {count}" for model, count in wins) + ".\n"
    texts = [text for title, part in parts for text in (title + "\n", *filter(None, map(part, tables)))]
    return "\n".join([lowest, *_stopped(whole), *texts])


def _stopped(rows: list[Row]) -> list[str]:
    """The note that explains the dagger."""
    stopped = [
        f"{row.model} on {row.dataset}, {row.cell.hide}: {row.stopped_after} s"
        for row in rows
        if row.stopped_after
    ]
    return [f"† A fit was stopped by a time limit: {'; '.join(stopped)}.\n"] if stopped else []


def report(results: Path = RESULTS, page: Path = PAGE, figures: Path = FIGURES) -> None:
    """Insert the tables between the markers of a page, and draw its figures."""
    rows = [row for row in read(results) if not row.limit and not row.epochs]
    drawn = []
    for name, (draw, alternative) in pictures.PICTURES.items():
        figure = draw(rows)
        if figure is not None:
            save(figure, figures / name)
            drawn.append(f"![{alternative}](figures/{name})\n\n")
    fill(page, START, END, "".join(drawn) + tables(rows))
