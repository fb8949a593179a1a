"""Write measured results into pages of the documentation."""

from __future__ import annotations

import json
import statistics
from math import exp, log
from pathlib import Path

from benchmarks import forward_table
from benchmarks.pages import fill, markdown

START, END = "<!-- tables -->", "<!-- end of tables -->"


def write(results: Path, page: Path) -> None:
    """Insert the tables of a results file between the markers of a page."""
    fill(page, START, END, tables(json.loads(results.read_text())))


def tables(data: dict) -> str:
    """One table per suite, a row per case: the peer's time, and the others as multiples of it."""
    machine = ", ".join(f"{key} {value}" for key, value in data["machine"].items())
    parts = [f"Measured on: {machine}.\n"]
    for suite in dict.fromkeys(result["suite"] for result in data["results"]):
        rows = [result for result in data["results"] if result["suite"] == suite]
        make = forward_table.table if suite == "forward_table" else _table
        parts.append(f"### {suite.replace('_', ' ')}\n\n{make(rows)}\n")
    return "\n".join(parts)


def forward_times(results: Path) -> str:
    """Compare the paper's forward times with those of a results file."""
    data = json.loads(results.read_text())
    return forward_table.table([result for result in data["results"] if result["suite"] == "forward_table"])


def _table(results: list[dict]) -> str:
    peer = results[0]["peer"]
    names = list(dict.fromkeys(name for result in results for name in result["contenders"]))
    others = [name for name in names if name != peer]
    memory = any("peak_bytes" in row for result in results for row in result["contenders"].values())
    latency = [percentile for percentile in ("p50", "p99") if percentile in results[0]["contenders"][peer]]
    header = ["case", f"{peer}, ms", *(f"{name} / {peer}" for name in others)]
    header += [f"{percentile} of {peer}, ms" for percentile in latency]
    if memory:
        header += [f"peak MiB, {name}" for name in names]
    lines = [_row(result, peer, others, latency, names if memory else []) for result in results]
    means = [_mean(results, name) for name in others]
    lines.append(["geometric mean", "", *means, *[""] * (len(header) - 2 - len(means))])
    return markdown(header, lines)


def _row(result: dict, peer: str, others: list[str], latency: list[str], measured: list[str]) -> list[str]:
    contenders = result["contenders"]
    ratios = [f"{contenders[name]['ratio']:.2f}" if name in contenders else "" for name in others]
    peaks = [
        f"{contenders[name]['peak_bytes'] / 2**20:.1f}" if "peak_bytes" in contenders.get(name, {}) else ""
        for name in measured
    ]
    single = [f"{contenders[peer][percentile] * 1e3:.3f}" for percentile in latency]
    return [result["case"], f"{contenders[peer]['min'] * 1e3:.3f}", *ratios, *single, *peaks]


def _mean(results: list[dict], name: str) -> str:
    ratios = [result["contenders"][name]["ratio"] for result in results if name in result["contenders"]]
    return f"{exp(statistics.fmean(map(log, ratios))):.2f}"
