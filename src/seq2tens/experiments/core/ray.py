"""Run cells on a Ray cluster, and add those that finish to a table."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seq2tens import _checks as check
from seq2tens.experiments.core.cells import AnyCell
from seq2tens.experiments.core.processes import KILLED, Outcome, Processes, Request
from seq2tens.experiments.core.progress import ProgressStyle
from seq2tens.experiments.core.runner import Summary, collect, prepare, record

# How often a cell is submitted again after its machine was lost.
RETRIES = 2
# How long it then waits for the lock of the first attempt, if machines share their files.
PATIENCE_SECONDS = 60.0
CONNECT_SECONDS = 10.0
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def run_on_ray(
    cells: Sequence[AnyCell],
    results: str | Path,
    address: str,
    *,
    threads: int = 1,
    data: str | Path | None = None,
    scratch: str | Path | None = None,
    progress: ProgressStyle = "auto",
    **options: Any,
) -> Summary:
    """Run every cell that is not in the table yet, each as a task of a Ray cluster.

    The cells of a lost machine, and cells whose process was killed, are submitted again, at most twice. Every
    machine needs this library, and the data at the same path.

    Args:
        cells: what to run, in this order.
        results: the table, on this machine; a row is added as soon as a cell is finished.
        address: address of the cluster, `HOST:PORT`, or `"auto"` for the one that this machine belongs to.
        threads: number of threads of each cell.
        data: folder of the data sets, by default that of the environment variable SEQ2TENS_DATA here.
        scratch: folder for the state of unfinished cells, created on every machine; by default `.seq2tens`
            next to the table. If machines share it, a cell resumes its training on another machine.
        progress: `"auto"` or True, `"bar"`, `"lines"`, `"silent"` or False.
        options: further arguments of the experiment, as for `run`.
    """
    requests = prepare(cells, results, threads=threads, data=data, scratch=scratch, **options)
    ray = _connect(address)
    with contextlib.redirect_stdout(sys.stderr):  # Ray reports lost machines on stdout, up to the end
        try:
            _check_cores(ray, threads)
            by_cell = {request.cell: request for request in requests}
            outcomes = (record(one, by_cell[one.cell], results) for one in _outcomes(ray, requests))
            return collect(outcomes, len(requests), progress)
        finally:
            ray.shutdown()


def _connect(address: str) -> Any:
    """Import Ray and connect to the cluster."""
    if importlib.util.find_spec("ray") is None:
        raise ImportError("running cells on a cluster needs ray: pip install 'seq2tens[ray]'")
    if address != "auto":
        host, _, port = address.rpartition(":")
        check.require(
            bool(host) and port.isdigit(), f"`address` must be HOST:PORT or 'auto', got {address!r}"
        )
        _check_answers(host, int(port))
        if host in LOOPBACK:
            # Ray replaces a loopback address by the external address of this machine and looks for the
            # cluster there. This variable, read when Ray is imported, turns that off.
            os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = importlib.import_module("ray")
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error")
    except ConnectionError as error:
        raise check.ArgumentError(f"`address` must be that of a running Ray cluster: {error}") from error
    return ray


def _check_answers(host: str, port: int) -> None:
    """Check that the address answers; Ray itself would retry for minutes."""
    try:
        socket.create_connection((host.strip("[]"), port), CONNECT_SECONDS).close()
    except OSError as error:
        raise check.ArgumentError(
            f"`address` must be that of a running Ray cluster, but nothing answers at {host}:{port} ({error})"
        ) from error


def _check_cores(ray: Any, threads: int) -> None:
    most = max(node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"])
    check.require(
        threads <= most,
        f"`threads` must be at most {most:g}, the cores of the largest machine, got {threads}",
    )


def _run(request: Request) -> Outcome:
    """Run a cell on a machine of the cluster, in a separate process."""
    outcome = Processes().run(request)
    if outcome.row is not None:
        request.clean()
    return outcome


def _outcomes(ray: Any, requests: Sequence[Request]) -> Iterator[Outcome]:
    """Submit all cells, and submit those again that were lost with their machines."""
    task = ray.remote(max_retries=0)(_run)

    def submit(request: Request) -> Any:
        return task.options(num_cpus=request.threads, name=str(request.cell)).remote(request)

    running = {submit(request): (request, 0) for request in requests}
    while running:
        (reference,), _ = ray.wait(list(running), num_returns=1)
        request, losses = running.pop(reference)
        outcome = _result(ray, reference, request)
        if outcome is not None:
            yield outcome
        elif losses < RETRIES:
            again = replace(request, patience=PATIENCE_SECONDS)
            running[submit(again)] = (again, losses + 1)
        else:
            yield Outcome(request.cell, reason=f"its machine or process was lost {losses + 1} times")


def _result(ray: Any, reference: Any, request: Request) -> Outcome | None:
    """The outcome of a task, or None if its machine or its process was lost.

    A machine that shuts down kills its processes one after the other, so a task may still report that its
    worker was killed.
    """
    try:
        outcome: Outcome = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        return Outcome(request.cell, reason=f"{type(error.cause).__name__}: {error.cause}")
    except ray.exceptions.RayError:
        return None
    return None if outcome.reason == KILLED else outcome
