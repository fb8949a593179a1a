"""A process for one cell: `python -m seq2tens.experiments.core.worker`, started by `processes.Processes`.

The first line of stdin is the request. When stdin ends, the parent is gone, and this process ends too: a cell
that nobody waits for would only be in the way of the next run.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from dataclasses import asdict
from pathlib import Path

from filelock import FileLock, Timeout

from seq2tens.experiments.core.processes import TAKEN, Request
from seq2tens.experiments.core.registry import measure


def main() -> int:
    """Answer the request; the exit code."""
    message = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    request = Request.from_dict(message["request"])
    try:
        with FileLock(request.lock, timeout=request.patience):
            _answer(request, Path(message["answer"]))
    except Timeout:
        return TAKEN
    return 0


def _answer(request: Request, answer: Path) -> None:
    import torch

    torch.set_num_threads(request.threads)
    row = measure(
        request.cell, request.threads, data=request.data, checkpoint=request.folder, **request.options
    )
    answer.write_text(json.dumps(asdict(row)))  # type: ignore[call-overload]


def _end_with_parent() -> None:
    """Wait for the end of stdin, by its descriptor: Python's own object is locked while it is read."""
    while os.read(0, 1024):
        pass
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # with the processes that this one has started
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
