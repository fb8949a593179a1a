"""Measure cases; contenders take turns, so that other load on the machine affects all of them alike."""

from __future__ import annotations

import ctypes
import gc
import importlib.metadata
import json
import platform
import statistics
import subprocess
import sys
import time
from math import exp, log
from pathlib import Path

import torch

from benchmarks.registry import Case, Work
from seq2tens.ops import kernels

SECONDS = 1.0  # minimum per contender and case
REPEATS = 4  # minimum number
SINGLE_CALLS = 2000  # for percentiles


def measure(case: Case, seconds: float = SECONDS) -> dict:
    """Times of all contenders of a case in seconds, ratios to its peer, and peak memory if requested."""
    works = {name: prepare() for name, prepare in case.contenders.items()}
    counts = {name: _calls_per_repeat(work) for name, work in works.items()}
    times: dict[str, list[float]] = {name: [] for name in works}
    begin = time.perf_counter()
    while len(times[case.peer]) < REPEATS or time.perf_counter() - begin < seconds * len(works):
        for name, work in works.items():
            times[name].append(_time(work, counts[name]) / case.shares.get(name, 1.0))
    rows = {
        name: {"min": min(t), "median": statistics.median(t), "repeats": len(t)} for name, t in times.items()
    }
    for row in rows.values():
        row["ratio"] = row["min"] / rows[case.peer]["min"]
    if case.latency:
        for name, row in rows.items():
            row |= percentiles(works[name])
    if case.memory:
        for name, row in rows.items():
            row["peak_bytes"] = _peak_in_subprocess(case, name)
    return {"suite": case.suite, "case": case.name, "peer": case.peer, "contenders": rows}


def _calls_per_repeat(work: Work) -> int:
    """The number of calls that take five milliseconds; the first calls compile and warm up."""
    work()
    return max(1, int(5e-3 / max(_time(work, 3), 1e-7)))


def _time(work: Work, calls: int) -> float:
    gc.disable()
    begin = time.perf_counter()
    for _ in range(calls):
        work()
    elapsed = time.perf_counter() - begin
    gc.enable()
    return elapsed / calls


def percentiles(work: Work) -> dict[str, float]:
    """Percentiles of the times of single calls."""
    cuts = statistics.quantiles((_time(work, 1) for _ in range(SINGLE_CALLS)), n=100)
    return {"p50": cuts[49], "p99": cuts[98]}


def peers() -> dict[str, str]:
    """Versions of the installed libraries that contenders come from."""
    names = ("pysiglib", "signax", "iisignature", "aeon")
    installed = {distribution.metadata["Name"].lower() for distribution in importlib.metadata.distributions()}
    return {name: importlib.metadata.version(name) for name in names if name in installed}


def peak_bytes(work: Work) -> int:
    """The additional memory of one call at its peak, including outputs (Linux only)."""
    work()  # load libraries first
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # reset the high-water mark
    before = status("VmRSS")
    result = work()
    peak = status("VmHWM")
    del result
    return peak - before


def status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def _peak_in_subprocess(case: Case, contender: str) -> int:
    command = [sys.executable, "-m", "benchmarks", "memory", case.suite, case.name, contender]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def table(result: dict) -> str:
    """Format a case as lines of text."""
    lines = [f"{result['suite']}: {result['case']}"]
    for name, row in result["contenders"].items():
        line = f"  {name:<12} min {row['min'] * 1e3:10.3f} ms   median {row['median'] * 1e3:10.3f} ms   "
        line += f"{row['ratio']:7.2f} x {result['peer']}"
        if "p99" in row:
            line += f"   p50 {row['p50'] * 1e3:.3f} ms   p99 {row['p99'] * 1e3:.3f} ms"
        if "peak_bytes" in row:
            line += f"   peak {row['peak_bytes'] / 2**20:8.1f} MiB"
        lines.append(line)
    return "\n".join(lines)


def summary(results: list[dict]) -> str:
    """Geometric means of the ratios by suite and contender."""
    ratios: dict[tuple[str, str], list[float]] = {}
    for result in results:
        for name, row in result["contenders"].items():
            ratios.setdefault((result["suite"], name), []).append(row["ratio"])
    lines = ["geometric means of the ratios"]
    for (suite, name), values in ratios.items():
        mean = exp(statistics.fmean(map(log, values)))
        lines.append(f"  {suite:<14} {name:<12} {mean:8.2f}   over {len(values)} cases")
    return "\n".join(lines)


def merged(old: list[dict], new: list[dict], only: str) -> list[dict]:
    """The new results in the places of the old ones; other cases stay if `only` left them out."""
    suites, by_case = {r["suite"] for r in new}, {(r["suite"], r["case"]): r for r in new}
    stay = [r for r in old if r["suite"] not in suites or only not in r["case"]]
    places = [r for r in old if r in stay or (r["suite"], r["case"]) in by_case]
    return [by_case.pop((r["suite"], r["case"]), r) for r in places] + list(by_case.values())


def run(cases: list[Case], out: Path, seconds: float, only: str = "") -> None:
    """Measure and print cases, and replace the results of their suites in a JSON file.

    If a suite was restricted to cases with `only` in their names, results of its other cases stay.
    """
    results = []
    for case in cases:
        results.append(measure(case, seconds))
        print(table(results[-1]), flush=True)
    print(summary(results))
    machine = {
        "processor": platform.processor() or platform.machine(),
        "kernels": kernels().split()[0],
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        **peers(),
    }
    old = json.loads(out.read_text())["results"] if out.exists() else []
    results = merged(old, results, only)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"machine": machine, "results": results}, indent=1))
    print(f"written to {out}")
