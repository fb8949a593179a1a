"""Reports: results tables as a page, as part of a page of documentation, and as single files."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import seq2tens
from seq2tens._checks import require
from seq2tens.experiments import (
    imputation_report,
    imputation_table,
    mortality_report,
    mortality_table,
    report_page,
    table,
    tsc_report,
)
from seq2tens.experiments.drawing import svg
from seq2tens.experiments.formats import Table
from seq2tens.experiments.rows import AnyRow, RowTable
from seq2tens.experiments.sections import Block, Picture, Section

START, END = "<!-- results -->", "<!-- end of results -->"


@dataclass(frozen=True)
class Kind:
    """How the results of an experiment are read and told; `options` are those that its section has.

    With `beside`, files beside the table belong to them, and the section is given the folder.
    """

    table: RowTable[Any]
    section: Callable[..., Section]
    options: tuple[str, ...] = ()
    beside: bool = False


# By the name of the experiment, which is that of its results table too.
KINDS = {
    "tsc": Kind(table.TABLE, tsc_report.section, ("samples",)),
    "mortality": Kind(mortality_table.TABLE, mortality_report.section),
    "imputation": Kind(imputation_table.TABLE, imputation_report.section, beside=True),
}


@dataclass(frozen=True)
class Source:
    """A results table that was read."""

    path: Path
    kind: Kind
    rows: Sequence[AnyRow]

    def section(self, **options: Any) -> Section:
        """What there is to tell."""
        folder = {"folder": self.path.parent} if self.kind.beside else {}
        return self.kind.section(self.rows, **folder, **options)


def read(path: str | Path) -> list[Source]:
    """The results in a table, or in the tables of a folder (`tsc.csv`, `mortality.csv`, `imputation.csv`).

    A table of another name is known by its columns. A table without a finished cell is an error.
    """
    path = Path(path)
    files = [path]
    if path.is_dir():
        files = [file for name in KINDS if (file := path / f"{name}.csv").exists()]
        names = " or ".join(f"{name}.csv" for name in KINDS)
        require(bool(files), f"{path} must hold a results table ({names}), got none")
    return [_read(file) for file in files]


def _read(path: Path) -> Source:
    kind = KINDS.get(path.stem) or _kind_by_columns(path)
    rows = kind.table.read(path)
    require(bool(rows), f"{path} must hold at least one finished cell, got none")
    return Source(path, kind, rows)


def _kind_by_columns(path: Path) -> Kind:
    with path.open(encoding="utf-8", newline="") as file:
        header = tuple(next(csv.reader(file), []))
    fitting = [kind for kind in KINDS.values() if kind.table.columns == header]
    require(
        len(fitting) == 1,
        f"{path} must be named after an experiment ({', '.join(KINDS)}) or have the columns of its table, "
        f"got {', '.join(header) or 'no columns'}",
    )
    return fitting[0]


def sections(sources: Sequence[Source], **options: int) -> list[Section]:
    """What there is to tell; `options` are those of the sections, such as `samples`."""
    return [
        source.section(**{name: options[name] for name in source.kind.options if name in options})
        for source in sources
    ]


def page(sections: Sequence[Section], sources: Sequence[Source], command: str) -> str:
    """All sections as one HTML page that names its sources and the command that made it."""
    names = ", ".join(f"`{source.path}` ({len(source.rows)} runs)" for source in sources)
    last = max(row.finished for source in sources for row in source.rows)[:10]
    return report_page.page(
        sections,
        title="Seq2Tens: our results beside the published ones",
        lead=f"From {names}; the last run was finished on {last}.",
        origin=f"Made by seq2tens {seq2tens.__version__}: `{command}`",
    )


def markdown(sources: Sequence[Source]) -> str:
    """The main tables of all results, for a page of documentation."""
    parts = []
    for source in sources:
        section = source.section(details=False)
        parts.append(f"## {section.title}")
        for part in section.parts:
            parts += [f"### {part.title}", *(_markdown(block) for block in part.blocks)]
    return "\n\n".join(parts)


def _markdown(block: Block) -> str:
    if isinstance(block, Table):
        return block.markdown()
    return block.caption if isinstance(block, Picture) else block


def between_marks(text: str, new: str, path: str | Path) -> str:
    """A page of documentation with what stands between its marks replaced."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    require(bool(start and end), f"{path} must hold the marks {START} and {END}")
    return f"{before}{START}\n\n{new}\n\n{END}{after}"


def files(sections: Sequence[Section]) -> dict[str, str]:
    """Every table as Markdown, CSV and LaTeX and every figure as SVG, by the name of its file."""
    blocks = [
        (block, section.name) for section in sections for part in section.parts for block in part.blocks
    ]
    return {name: text for block, prefix in blocks for name, text in _files(block, prefix).items()}


def _files(block: Block, prefix: str) -> dict[str, str]:
    if isinstance(block, Table):
        name = f"{prefix}-{block.name}"
        return {
            f"{name}.md": block.markdown() + "\n",
            f"{name}.csv": block.csv(),
            f"{name}.tex": block.latex(),
        }
    if isinstance(block, Picture):
        return {f"{prefix}-{block.name}.svg": svg(block.figure, block.caption, block.name) + "\n"}
    return {}
