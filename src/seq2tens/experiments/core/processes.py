"""Run each cell in a separate process, so that a crash affects that cell only."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seq2tens.experiments.core import registry
from seq2tens.experiments.core.cells import AnyCell
from seq2tens.experiments.core.rows import AnyRow

KILLED = f"ended by {signal.SIGKILL.name}"
# Exit code of a worker if another process is running the cell.
EXIT_TAKEN = 75
# Libraries read these variables when they are loaded, so they are set for the new process.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
# Read by glibc. Without them, tensors of some megabytes are returned to the system when they are freed, and
# the next one needs new pages: this takes a tenth of a training step of FCN-LS2T on the stays.
MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(2**26), "MALLOC_TRIM_THRESHOLD_": str(2**30)}
# How long a process may take to end after SIGTERM.
GRACE_SECONDS = 10.0


@dataclass(frozen=True)
class Request:
    """A cell, and what a machine needs to run it.

    `patience` is how many seconds to wait for another process that is running the cell; `options` are
    further arguments of the experiment's `measure`.
    """

    cell: AnyCell
    threads: int
    data: str | None
    scratch: str
    patience: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder for the state of the unfinished cell."""
        return Path(self.scratch, self.cell.key)

    @property
    def lock(self) -> Path:
        """The lock file that a process holds while it runs the cell."""
        return Path(self.scratch, f"{self.cell.key}.lock")

    @property
    def claim(self) -> Path:
        """The lock file that a run on this machine holds until the cell is in its table."""
        return Path(self.scratch, f"{self.cell.key}.claim")

    @property
    def log(self) -> Path:
        """The file with the stderr of the process; kept if it fails."""
        return Path(self.scratch, f"{self.cell.key}.log")

    def clean(self) -> None:
        """Remove the files that are not needed once the cell is finished."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for path in (self.log, self.lock):
            path.unlink(missing_ok=True)

    def to_dict(self) -> dict[str, Any]:
        """The request as JSON data."""
        return {**vars(self), "cell": self.cell.to_dict()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Request:
        """Restore a request from the result of `to_dict`."""
        cell = registry.find(data["cell"]["experiment"]).cell
        return cls(**{**data, "cell": cell.from_dict(data["cell"])})


@dataclass(frozen=True)
class Outcome:
    """The outcome of a cell: a row, or the reason of a failure; neither if another process is running it."""

    cell: AnyCell
    row: AnyRow | None = None
    reason: str | None = None

    def __str__(self) -> str:
        if self.row is not None:
            return self.row.headline
        return "left to another run" if self.reason is None else f"failed, {self.reason}"


class Processes:
    """The running processes, one for each thread that calls `run`."""

    def __init__(self) -> None:
        self._running: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, request: Request) -> Outcome:
        """Run a cell in a new process and wait for it."""
        Path(request.scratch).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="seq2tens-") as folder:
            answer = Path(folder, "row.json")
            process = self._start(request, answer)
            if process is None:
                return Outcome(request.cell, reason="interrupted")
            code = process.wait()
            _close(process)
            return _outcome(request, code, answer)

    def stop(self) -> None:
        """End all processes and start no more."""
        with self._lock:
            self._stopped = True
        for process in self._running:
            _signal(process, signal.SIGTERM)
        for process in self._running:
            try:
                process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL)

    def _start(self, request: Request, answer: Path) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._stopped:
                return None
            self._running = [process for process in self._running if process.poll() is None]
            process = _launch(request, answer)
            self._running.append(process)
            return process


def _launch(request: Request, answer: Path) -> subprocess.Popen[bytes]:
    """Start a worker and send its request; it ends when its stdin closes, so that none outlives us."""
    with open(request.log, "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "seq2tens.experiments.core.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=MALLOC | os.environ | dict.fromkeys(THREADS, str(request.threads)),
            start_new_session=True,  # Ctrl-C reaches this process only, which then stops the others
        )
    assert process.stdin is not None
    line = json.dumps({"request": request.to_dict(), "answer": str(answer)})
    with contextlib.suppress(BrokenPipeError):  # the worker has ended already, which its exit code reports
        process.stdin.write(f"{line}\n".encode())
        process.stdin.flush()
    return process


def _close(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()


def _outcome(request: Request, code: int, answer: Path) -> Outcome:
    if code == EXIT_TAKEN:
        return Outcome(request.cell)
    if code == 0 and answer.exists():
        row = registry.find(request.cell.experiment).table.row
        return Outcome(request.cell, row(**json.loads(answer.read_text())))
    return Outcome(request.cell, reason=_reason(request, code))


def _reason(request: Request, code: int) -> str:
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    lines = request.log.read_text(errors="replace").strip().splitlines()
    return f"{lines[-1].strip() if lines else f'exit code {code}'} (more in {request.log})"


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to a process and its children."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
