"""What a report consists of: sections of parts, and in them text, tables and figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from seq2tens.experiments.report.tables import Table


@dataclass(frozen=True)
class Picture:
    """A figure with what it shows, and a name for its file."""

    name: str
    caption: str
    figure: Figure


class Missing(str):
    """A text about what has not been run yet, which a page folds away."""


# A text may hold `code` between backticks.
Block = str | Table | Picture


@dataclass(frozen=True)
class Part:
    """Blocks under a heading."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Section:
    """All of one experiment."""

    name: str
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class ReportOptions:
    """What a section is to hold.

    Attributes:
        details: False leaves only what goes into the documentation.
        folder: where the table is, with the files of cells beside it; None for a table alone.
        samples: draws from a posterior: so many give a probability to within 0.01.
    """

    details: bool = True
    folder: Path | None = None
    samples: int = 10_000
