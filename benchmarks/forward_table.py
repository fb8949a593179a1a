"""Forward times of the paper and ours: LSTM and Conv1D against every order."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.layer import BATCH, FEATURES, forward, ls2t, peers
from benchmarks.pages import markdown
from benchmarks.registry import Case, suite

PUBLISHED = Path(__file__).with_name("forward_published.csv")
PEERS = {"LSTM": "LSTM", "Conv1D": "Conv1d k32"}  # by their names in the paper; its filters have size 32
WEIGHTS = {"LS2T": "independent", "LS2T-R": "recursive"}
HEADER = ["layer"]
HEADER += [
    f"{place}, {column}" for place in ("paper", "here") for column in ("ms", "LSTM / it", "Conv1D / it")
]


class Published(NamedTuple):
    """A time of the paper's table; `order` is None for LSTM and Conv1D."""

    length: int
    layer: str
    order: int | None
    seconds: float

    @property
    def name(self) -> str:
        """The name of the row in our table."""
        return f"L={self.length} {self.layer}" + ("" if self.order is None else f" M={self.order}")


def published() -> list[Published]:
    """The paper's table: batch 32, 64 channels, width 64, on a GeForce 2080 Ti."""
    with PUBLISHED.open(newline="") as file:
        return [
            Published(
                int(row["length"]),
                row["layer"],
                int(row["order"]) if row["order"] else None,
                float(row["seconds"]),
            )
            for row in csv.DictReader(file)
        ]


@suite
def forward_table() -> Iterator[Case]:
    """Every layer of the paper's table of forward times, against LSTM or Conv1D."""
    for row in published():
        if row.order is None:
            continue
        fused = forward(ls2t(row.order, WEIGHTS[row.layer], "cpu"), BATCH, row.length, FEATURES)
        others = peers(row.length, forward)
        for peer, name in PEERS.items():
            contenders = {"fused": fused, "other layer": others[name]}
            yield Case("forward_table", f"{row.name} {peer}", "fused", contenders)


def table(results: list[dict]) -> str:
    """The paper's times and ours in one table; entries that were not measured are blank."""
    measured = {result["case"]: result["contenders"] for result in results}
    paper = published()
    return markdown(HEADER, [[row.name, *_paper(row, paper), *_here(row, measured)] for row in paper])


def _paper(row: Published, rows: list[Published]) -> list[str]:
    if row.order is None:
        return [_digits(row.seconds * 1e3), "", ""]
    seconds = {r.layer: r.seconds for r in rows if r.length == row.length and r.order is None}
    return [_digits(row.seconds * 1e3), *(_digits(seconds[peer] / row.seconds) for peer in PEERS)]


def _here(row: Published, measured: dict[str, dict]) -> list[str]:
    if row.order is None:  # the same work in several cases
        start, end = f"L={row.length} ", f" {row.layer}"
        cases = [m for name, m in measured.items() if name.startswith(start) and name.endswith(end)]
        return [_milliseconds(cases, "other layer"), "", ""]
    pairs = [measured.get(f"{row.name} {peer}") for peer in PEERS]
    ratios = ["" if pair is None else _digits(pair["other layer"]["ratio"]) for pair in pairs]
    return [_milliseconds([pair for pair in pairs if pair is not None], "fused"), *ratios]


def _milliseconds(cases: list[dict], contender: str) -> str:
    return _digits(min(case[contender]["min"] for case in cases) * 1e3) if cases else ""


def _digits(value: float) -> str:
    """Format a number with three digits, or without decimals if it is at least 100."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
