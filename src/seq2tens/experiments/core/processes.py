"""Cells in processes of their own: whatever happens to one costs that cell only."""

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
# Exit code of a worker where another process is at work on the cell.
TAKEN = 75
# Read by libraries when they are loaded, so they are set before.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
# Read by glibc. Without it tensors of some megabytes go back to the system when they are freed, and the pages
# of the next one are asked for anew: a tenth of a training step of FCN-LS2T on the stays.
HEAP = {"MALLOC_MMAP_THRESHOLD_": str(2**26), "MALLOC_TRIM_THRESHOLD_": str(2**30)}
# What a process that was asked to end may take for it.
GRACE_SECONDS = 10.0


@dataclass(frozen=True)
class Request:
    """A cell, and what it needs to be run on some machine.

    `patience` is how many seconds to wait for another process that is at work on the cell, `options` are
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
        """Where the cell keeps its state meanwhile."""
        return Path(self.scratch, self.cell.key)

    @property
    def lock(self) -> Path:
        """Held while a process is at work on the cell."""
        return Path(self.scratch, f"{self.cell.key}.lock")

    @property
    def claim(self) -> Path:
        """Held by a run on this machine until the cell is in its table."""
        return Path(self.scratch, f"{self.cell.key}.claim")

    @property
    def log(self) -> Path:
        """What the process has to say; kept if it fails."""
        return Path(self.scratch, f"{self.cell.key}.log")

    def clean(self) -> None:
        """Remove what is not needed once the cell is finished."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for path in (self.log, self.lock):
            path.unlink(missing_ok=True)

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {**vars(self), "cell": self.cell.to_dict()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Request:
        """The request that `to_dict` wrote."""
        cell = registry.find(data["cell"]["experiment"]).cell
        return cls(**{**data, "cell": cell.from_dict(data["cell"])})


@dataclass(frozen=True)
class Outcome:
    """How it went: a row, or the reason why there is none; neither where another process is at work on it."""

    cell: AnyCell
    row: AnyRow | None = None
    reason: str | None = None

    def __str__(self) -> str:
        if self.row is not None:
            return self.row.headline
        return "left to another run" if self.reason is None else f"failed, {self.reason}"


class Processes:
    """The processes that are running, one for each thread that calls `run`."""

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
        """End all processes; none will be started any more."""
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
    """A worker with its request; it ends when its stdin does, so that none outlives this process."""
    with open(request.log, "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "seq2tens.experiments.core.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=HEAP | os.environ | dict.fromkeys(THREADS, str(request.threads)),
            start_new_session=True,  # Ctrl-C is for this process, which decides what becomes of the others
        )
    assert process.stdin is not None
    line = json.dumps({"request": request.to_dict(), "answer": str(answer)})
    with contextlib.suppress(BrokenPipeError):  # it has ended already, and its exit code will tell
        process.stdin.write(f"{line}\n".encode())
        process.stdin.flush()
    return process


def _close(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()


def _outcome(request: Request, code: int, answer: Path) -> Outcome:
    if code == TAKEN:
        return Outcome(request.cell)
    if code == 0 and answer.exists():
        row = registry.find(request.cell.experiment).table.row
        return Outcome(request.cell, row(**json.loads(answer.read_text())))
    return Outcome(request.cell, reason=_reason(request, code))


def _reason(request: Request, code: int) -> str:
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    said = request.log.read_text(errors="replace").strip().splitlines()
    return f"{said[-1].strip() if said else f'exit code {code}'} (more in {request.log})"


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """To the process and those that it has started."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
