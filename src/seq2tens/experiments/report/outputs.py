"""Turn results tables into an HTML page, part of a Markdown page, or single files."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import seq2tens
from seq2tens._checks import ArgumentError, require
from seq2tens.experiments.core import registry
from seq2tens.experiments.core.rows import AnyRow
from seq2tens.experiments.report import html
from seq2tens.experiments.report.blocks import Block, Picture, Section
from seq2tens.experiments.report.style import svg
from seq2tens.experiments.report.tables import Table

START, END = "<!-- results -->", "<!-- end of results -->"


@dataclass(frozen=True)
class Source:
    """A results table with its path and its experiment."""

    path: Path
    experiment: registry.Experiment
    rows: Sequence[AnyRow]

    def section(self, **options: Any) -> Section:
        """The section of the report about this table; `options` as in `ReportOptions`."""
        return registry.section(self.experiment.name, self.rows, folder=self.path.parent, **options)


def read(path: str | Path) -> list[Source]:
    """Read a results table, or all tables of a folder (`tsc.csv`, `mortality.csv`, `imputation.csv`).

    A table with another name is recognised by its columns. A table without a finished cell is an error.
    """
    path = Path(path)
    files = [path]
    if path.is_dir():
        files = [file for name in registry.NAMES if (file := path / f"{name}.csv").exists()]
        names = " or ".join(f"{name}.csv" for name in registry.NAMES)
        require(bool(files), f"{path} must hold a results table ({names}), got none")
    return [_read(file) for file in files]


def _read(path: Path) -> Source:
    known = path.stem in registry.NAMES
    experiment = registry.find(path.stem) if known else _experiment_by_columns(path)
    rows = experiment.table.read(path)
    require(bool(rows), f"{path} must hold at least one finished cell, got none")
    return Source(path, experiment, rows)


def _experiment_by_columns(path: Path) -> registry.Experiment:
    with path.open(encoding="utf-8", newline="") as file:
        header = tuple(next(csv.reader(file), []))
    for name in registry.NAMES:
        if registry.find(name).table.columns == header:
            return registry.find(name)
    names, columns = ", ".join(registry.NAMES), ", ".join(header) or "no columns"
    raise ArgumentError(
        f"{path} must be named after an experiment ({names}) or have the columns of its table, got {columns}"
    )


def sections(sources: Sequence[Source], **options: Any) -> list[Section]:
    """The sections of a report; `options` as in `ReportOptions`, such as `samples`."""
    return [source.section(**options) for source in sources]


def shown(path: Path) -> str:
    """A path as shown to readers: without the folders of this machine."""
    return path.name if path.is_absolute() else path.as_posix()


def page(sections: Sequence[Section], sources: Sequence[Source], command: str) -> str:
    """One HTML page with all sections, its sources and the command that made it."""
    names = ", ".join(f"`{shown(source.path)}` ({len(source.rows)} runs)" for source in sources)
    last = max(row.finished for source in sources for row in source.rows)[:10]
    return html.page(
        sections,
        title="Seq2Tens: our results and the published ones",
        lead=f"From {names}; the last run was finished on {last}.",
        origin=f"Made by seq2tens {seq2tens.__version__}: `{command}`",
    )


def markdown(sources: Sequence[Source]) -> str:
    """The main tables of all results as Markdown, for a page of documentation."""
    parts = []
    for section in sections(sources, details=False):
        parts.append(f"## {section.title}")
        for part in section.parts:
            parts += [f"### {part.title}", *(_markdown(block) for block in part.blocks)]
    return "\n\n".join(parts)


def _markdown(block: Block) -> str:
    if isinstance(block, Table):
        return block.markdown()
    return block.caption if isinstance(block, Picture) else block


def between_marks(text: str, new: str, path: str | Path) -> str:
    """Replace the text between the markers of a page of documentation."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    require(bool(start and end), f"{path} must hold the markers {START} and {END}")
    return f"{before}{START}\n\n{new}\n\n{END}{after}"


def files(sections: Sequence[Section]) -> dict[str, str]:
    """Every table as Markdown, CSV and LaTeX and every figure as SVG, by file name."""
    texts: dict[str, str] = {}
    for section in sections:
        for part in section.parts:
            for block in part.blocks:
                texts |= _files(block, section.name)
    return texts


def _files(block: Block, prefix: str) -> dict[str, str]:
    if isinstance(block, str):
        return {}
    name = f"{prefix}-{block.name}"
    if isinstance(block, Picture):
        return {f"{name}.svg": svg(block.figure, block.caption, block.name) + "\n"}
    return {f"{name}.md": block.markdown() + "\n", f"{name}.csv": block.csv(), f"{name}.tex": block.latex()}
