"""The process of one cell: `python -m seq2tens.experiments.core.worker`, started by `processes.Processes`.

The first line of stdin is the request. When stdin closes, the parent has ended, and this process ends too: an
orphaned cell would only block the next run.
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

from seq2tens.experiments.core.processes import EXIT_TAKEN, Request
from seq2tens.experiments.core.registry import measure


def main() -> int:
    """Answer the request and return the exit code."""
    message = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    request = Request.from_dict(message["request"])
    try:
        with FileLock(request.lock, timeout=request.patience):
            _answer(request, Path(message["answer"]))
    except Timeout:
        return EXIT_TAKEN
    return 0


def _answer(request: Request, answer: Path) -> None:
    import torch

    torch.set_num_threads(request.threads)
    row = measure(
        request.cell, request.threads, data=request.data, checkpoint=request.folder, **request.options
    )
    answer.write_text(json.dumps(asdict(row)))  # type: ignore[call-overload]


def _end_with_parent() -> None:
    """End this process when stdin closes; reads the descriptor, since `sys.stdin` may be locked."""
    while os.read(0, 1024):
        pass
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # including child processes
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
