"""Run cells on this machine, and add finished ones to a table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seq2tens import _checks as check
from seq2tens._storage import exclusive
from seq2tens.experiments.core import registry
from seq2tens.experiments.core.cells import AnyCell
from seq2tens.experiments.core.processes import Outcome, Processes, Request
from seq2tens.experiments.core.progress import Progress, ProgressStyle


@dataclass
class Summary:
    """The summary of a run: cells that were added to the table, and failed cells with their reasons.

    `elsewhere` are cells that another process was running, or had finished in the meantime.
    """

    done: list[AnyCell] = field(default_factory=list)
    failed: dict[AnyCell, str] = field(default_factory=dict)
    elsewhere: list[AnyCell] = field(default_factory=list)

    def __add__(self, other: Summary) -> Summary:
        """Combine the summaries of two runs."""
        return Summary(self.done + other.done, self.failed | other.failed, self.elsewhere + other.elsewhere)


def run(
    cells: Sequence[AnyCell],
    results: str | Path,
    *,
    workers: int = 1,
    threads: int | None = None,
    data: str | Path | None = None,
    scratch: str | Path | None = None,
    progress: ProgressStyle = "auto",
    **options: Any,
) -> Summary:
    """Run every cell that is not in the table yet, each in a separate process.

    If a process crashes or a cell fails, the other cells still run.

    Args:
        cells: what to run, in this order.
        results: the table; a row is added as soon as a cell is finished.
        workers: number of cells to run in parallel.
        threads: number of threads of all workers together; by default the number of cores of this process.
        data: folder of the data sets, by default that of the environment variable SEQ2TENS_DATA.
        scratch: folder for the state of unfinished cells, such as checkpoints, from which the next run
            resumes; by default `.seq2tens` next to the table.
        progress: `"auto"` or True, `"bar"`, `"lines"`, `"silent"` or False.
        options: further arguments of the experiment, such as `skip_bad` of the mortality experiment.
    """
    check.positive_int("workers", workers)
    threads = cores() if threads is None else threads
    check.positive_int("threads", threads)
    share = max(1, threads // workers)
    requests = prepare(cells, results, threads=share, data=data, scratch=scratch, **options)
    return collect(_outcomes(requests, results, workers), len(requests), progress)


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def prepare(
    cells: Sequence[AnyCell],
    results: str | Path,
    *,
    threads: int,
    data: str | Path | None = None,
    scratch: str | Path | None = None,
    **options: Any,
) -> list[Request]:
    """Requests for the cells that are not finished yet."""
    check.positive_int("threads", threads)
    folder = Path(results).parent / ".seq2tens" if scratch is None else Path(scratch)
    data = os.environ.get("SEQ2TENS_DATA") if data is None else data
    source = None if data is None else str(Path(data).resolve())
    done = finished(cells, results)
    return [
        Request(cell, threads, source, str(folder.resolve()), options=options)
        for cell in dict.fromkeys(cells)
        if cell.key not in done
    ]


def finished(cells: Sequence[AnyCell], results: str | Path) -> set[str]:
    """Keys of the finished cells in a table of the same experiment."""
    return {key for name in _experiments(cells) for key in registry.find(name).table.finished(results)}


def _experiments(cells: Sequence[AnyCell]) -> list[str]:
    names = sorted({cell.experiment for cell in cells})
    check.require(len(names) < 2, f"`cells` must be of one experiment, got {', '.join(names)}")
    return names


def record(outcome: Outcome, request: Request, results: str | Path) -> Outcome:
    """Add a finished cell to the table; if it is there already, the outcome is that of another run."""
    if outcome.row is None:
        return outcome
    added = registry.find(outcome.cell.experiment).table.append(results, outcome.row)
    request.clean()
    return outcome if added else Outcome(outcome.cell)


def collect(outcomes: Iterator[Outcome], total: int, progress: ProgressStyle) -> Summary:
    """Show outcomes as they arrive, and summarise them."""
    summary = Summary()
    with Progress(progress, total) as display:
        for outcome in outcomes:
            if outcome.row is not None:
                summary.done.append(outcome.cell)
            elif outcome.reason is not None:
                summary.failed[outcome.cell] = outcome.reason
            else:
                summary.elsewhere.append(outcome.cell)
            display.show(outcome)
    return summary


def _outcomes(requests: Iterable[Request], results: str | Path, workers: int) -> Iterator[Outcome]:
    """Run and record cells in parallel; all processes end when the caller closes this generator."""
    processes = Processes()

    def run_one(request: Request) -> Outcome:
        request.claim.parent.mkdir(parents=True, exist_ok=True)
        # The claim lasts until the row is in the table; otherwise two runs could both find the cell missing.
        with exclusive(request.claim, wait=False) as ours:
            if not ours or request.cell.key in finished([request.cell], results):
                return Outcome(request.cell)
            return record(processes.run(request), request, results)

    with ThreadPoolExecutor(workers) as pool:
        try:
            for future in as_completed([pool.submit(run_one, request) for request in requests]):
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            processes.stop()
