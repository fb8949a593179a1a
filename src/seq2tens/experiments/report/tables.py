"""Tables that compare numbers with published ones, as Markdown, CSV and LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from seq2tens.experiments.core.rows import csv_text

# Special characters of LaTeX, and characters that its fonts may lack.
_LATEX = str.maketrans(
    {c: rf"\{c}" for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"±": r"$\pm$", "−": "$-$", "³": "$^3$", "†": r"$^\dagger$", "–": "--", "×": r"$\times$"}
)

NO_BREAK = "\N{NO-BREAK SPACE}"
# Shown instead of a number that has not been measured, or that cannot exist.
NOT_RUN, NONE = "not run", "–"
# Whether higher or lower numbers are better.
HIGHER, LOWER = 1, -1


class Score(NamedTuple):
    """A published number, with its standard deviation over runs if that is known."""

    mean: float
    std: float | None = None


@dataclass(frozen=True)
class Entry:
    """An entry of a table.

    `value` is the number behind the text, by which rows are sorted; `published` is the number to compare it
    with, and `published_spread` its standard deviation, if known. These and the difference are shown with
    `digits`; a difference of more than `far` is marked. `better` is MORE or LESS, or 0 if neither is better.
    """

    text: str
    value: float | None = None
    published: float | None = None
    digits: int = 3
    far: float = float("inf")
    published_spread: float | None = None
    better: int = 0

    @property
    def change(self) -> float | None:
        """The value minus the published one, in the digits shown; None if one of them is missing."""
        if self.value is None or self.published is None:
            return None
        return round(self.value - self.published, self.digits) + 0.0  # avoids -0

    @property
    def is_far(self) -> bool:
        """Whether the difference is larger than `far`."""
        return self.change is not None and abs(self.change) > self.far

    @property
    def verdict(self) -> str:
        """Whether it is better or worse than the published number; empty if neither."""
        gain = (self.change or 0) * self.better
        return "better" if gain > 0 else "worse" if gain < 0 else ""

    @property
    def is_similar(self) -> bool:
        """Whether the difference is within `far`, or within the published spread if `far` is not set."""
        tolerance = self.far if self.far < float("inf") else self.published_spread or 0.0
        return self.change is not None and abs(self.change) <= tolerance

    @property
    def is_absent(self) -> bool:
        """Whether the number is missing."""
        return self.text in (NOT_RUN, NONE)

    @property
    def published_text(self) -> str:
        """The published number, empty if there is none."""
        return "" if self.published is None else f"{self.published:.{self.digits}f}"

    @property
    def published_label(self) -> str:
        """The published number with its spread, for readers."""
        spread = self.published_spread
        return self.published_text + ("" if spread is None else f" ± {spread:.{self.digits}f}")

    @property
    def change_text(self) -> str:
        """The difference with its sign, empty if there is none."""
        return "" if self.change is None else signed(self.change, self.digits)


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign; zero has none."""
    text = f"{value:+.{digits}f}".replace("-", "−")
    return text[1:] if float(f"{value:.{digits}f}") == 0 else text


def count(value: int) -> Entry:
    """An entry for a count."""
    return Entry(str(value), value)


def number(value: float | None, digits: int = 0) -> Entry:
    """An entry for a number that may not have been measured."""
    return Entry(NONE) if value is None else Entry(f"{value:,.{digits}f}", value)


def not_run(paper: Score | None) -> Entry:
    """An entry for what has not been run, if the paper has a number for it, else for none."""
    return Entry(NONE) if paper is None else Entry(NOT_RUN, None, paper.mean, published_spread=paper.std)


@dataclass(frozen=True)
class Table:
    """A table with a caption, an optional last line about all rows, and notes below.

    The first entry of a row names it. `name` is for files and links. The entries of a `main` table are
    counted in the figure at the top of a page; no number occurs in two of them.
    """

    name: str
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    last: tuple[Entry, ...] = ()
    notes: tuple[str, ...] = ()
    main: bool = False

    @property
    def lines(self) -> tuple[tuple[Entry, ...], ...]:
        """The rows, and the last line if there is one."""
        return (*self.rows, self.last) if self.last else self.rows

    @property
    def texts(self) -> tuple[bool, ...]:
        """Which columns have no numbers."""
        columns = ([row[i] for row in self.rows] for i in range(len(self.header)))
        return tuple(
            all(entry.value is None and not entry.is_absent for entry in column) for column in columns
        )

    @property
    def idle_rows(self) -> tuple[bool, ...]:
        """Which rows are about something that has not been run."""
        return tuple(_is_idle(row) for row in self.rows)

    @property
    def idle_columns(self) -> tuple[bool, ...]:
        """Which columns are about something that has not been run."""
        return tuple(_is_idle([row[i] for row in self.rows]) for i in range(len(self.header)))

    def markdown(self) -> str:
        """The table as Markdown; published numbers are on a second line of their entry."""
        rule = ["---" if text else "---:" for text in self.texts]
        lines = [[_escape_bar(name) for name in self.header], rule]
        lines += [[_markdown(entry) for entry in row] for row in self.lines]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return "\n\n".join([f"**{self.caption}**", table, *self.notes])

    def csv(self) -> str:
        """The table as CSV with all digits, and separate columns for published numbers and differences."""
        compared = [any(row[i].published is not None for row in self.lines) for i in range(len(self.header))]
        names = [(name, f"{name}, published", f"{name}, difference") for name in self.header]
        lines = (names, *([_numbers(entry) for entry in row] for row in self.lines))
        return csv_text(_flat(triples, compared) for triples in lines)

    def latex(self) -> str:
        """The table as a LaTeX `tabular` with booktabs rules; published numbers are in parentheses."""
        lines = [" & ".join(_latex(entry) for entry in row) + r" \\" for row in self.rows]
        if self.last:
            lines += [r"\midrule", " & ".join(_latex(entry) for entry in self.last) + r" \\"]
        return "\n".join(
            [
                f"% {self.caption}",
                rf"\begin{{tabular}}{{{''.join('l' if text else 'r' for text in self.texts)}}}",
                r"\toprule",
                " & ".join(name.translate(_LATEX) for name in self.header) + r" \\",
                r"\midrule",
                *lines,
                r"\bottomrule",
                r"\end{tabular}",
                "",
            ]
        )


def _is_idle(entries: Sequence[Entry]) -> bool:
    """Whether something was not run and nothing was measured; a count of 0 runs is not a measurement."""
    return any(entry.text == NOT_RUN for entry in entries) and not any(entry.value for entry in entries)


def _escape_bar(text: str) -> str:
    return text.replace("|", r"\|")


def _markdown(entry: Entry) -> str:
    if entry.value is None and entry.published is None:
        return _escape_bar(entry.text)
    published = ", ".join(filter(None, [entry.published_label, entry.change_text]))
    text = entry.text + (f"<br>paper {published}" if published else "")
    return text.replace(" ", NO_BREAK)


def _numbers(entry: Entry) -> tuple[str, str, str]:
    value = entry.text if entry.value is None else f"{entry.value:.10g}"
    change = "" if entry.change is None else f"{entry.change:.{entry.digits}f}"
    return value, entry.published_text, change


def _flat(triples: Sequence[tuple[str, str, str]], compared: Sequence[bool]) -> list[str]:
    """The first text of each triple, and the other two in columns that are compared."""
    return [
        text for triple, wide in zip(triples, compared, strict=True) for text in triple[: 3 if wide else 1]
    ]


def _latex(entry: Entry) -> str:
    text = entry.text.translate(_LATEX)
    return f"{text} ({entry.published_label.translate(_LATEX)})" if entry.published_text else text
