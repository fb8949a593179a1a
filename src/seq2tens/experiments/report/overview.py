"""A summary of the main tables as a figure, for the top of a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from seq2tens.experiments.report.blocks import Picture, Section
from seq2tens.experiments.report.style import BLUE, INK, ORANGE, PALE, styled
from seq2tens.experiments.report.tables import NOT_RUN, Entry, Table

# Colour and hatching of each verdict, from the best to the worst.
VERDICTS = {"better": (BLUE, ""), "similar": (PALE, ""), "worse": (ORANGE, "////")}
CAPTION = (
    "How many of our numbers are better than published, similar or worse. Similar: within 0.02 for "
    "accuracies of classifiers, else within the published standard deviation."
)
# Narrow, so that its text can be read on a phone.
WIDTH = 4.0  # inches


def overview(sections: Sequence[Section]) -> Picture | None:
    """A figure with a bar for each experiment; None if no entry has a published number."""
    counts = {section.title: agreement(section) for section in sections}
    counts = {
        title: number for title, number in counts.items() if any(number[verdict] for verdict in VERDICTS)
    }
    return Picture("overview", CAPTION, _bars(counts)) if counts else None


def agreement(section: Section) -> Counter[str]:
    """Count the entries of the main tables that are better, similar or worse than published, or not run."""
    tables = [block for part in section.parts for block in part.blocks if isinstance(block, Table)]
    entries = [entry for table in tables if table.main for row in table.rows for entry in row]
    return Counter(_verdict(entry) for entry in entries if entry.published is not None)


def _verdict(entry: Entry) -> str:
    return NOT_RUN if entry.change is None else "similar" if entry.is_similar else entry.verdict or "similar"


@styled
def _bars(counts: dict[str, Counter[str]]) -> Figure:
    figure = Figure(figsize=(WIDTH, 0.55 + 0.62 * len(counts)), layout="constrained")
    ax = figure.subplots()
    positions = np.arange(len(counts))
    totals = np.array([sum(number[verdict] for verdict in VERDICTS) for number in counts.values()])
    left = np.zeros(len(counts))
    for verdict, (color, hatch) in VERDICTS.items():
        width = np.array([number[verdict] for number in counts.values()]) / totals
        ax.barh(positions, width, 0.42, left, color=color, edgecolor=INK, lw=0.7, hatch=hatch, label=verdict)
        left = left + width
    for position, (title, number) in zip(positions, counts.items(), strict=True):
        ax.text(0, position - 0.29, _line(title, number), va="bottom", parse_math=False)
    ax.set(xlim=(0, 1), ylim=(len(counts) - 0.6, -0.75))
    ax.set_axis_off()
    figure.legend(loc="outside lower left", ncols=len(VERDICTS))
    return figure


def _line(title: str, number: Counter[str]) -> str:
    return f"{title}: {', '.join(f'{number[verdict]} {verdict}' for verdict in VERDICTS)}"
