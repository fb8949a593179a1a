"""The structure of a report: sections of parts, with text, tables and figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from seq2tens.experiments.report.tables import Table


@dataclass(frozen=True)
class Picture:
    """A figure with its caption and a name for its file."""

    name: str
    caption: str
    figure: Figure


class Missing(str):
    """A text about what has not been run yet, which a page collapses."""


# Text may have `code` between backticks.
Block = str | Table | Picture


@dataclass(frozen=True)
class Part:
    """Blocks under a heading."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Section:
    """The section of one experiment."""

    name: str
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class ReportOptions:
    """Options of a section.

    Attributes:
        details: False keeps only what goes into the documentation.
        folder: folder of the table and of the files that cells write; None for a table alone.
        samples: number of draws from a posterior; the default gives probabilities to within 0.01.
    """

    details: bool = True
    folder: Path | None = None
    samples: int = 10_000
