"""Provenance and cost of a result: versions, commit, time and memory."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

from torch import nn

import seq2tens

T = TypeVar("T")


def versions() -> str:
    """Versions of Python and of the packages that matter for a result."""
    packages = {name: importlib.metadata.version(name) for name in ("torch", "aeon")}
    named = {"python": platform.python_version(), **packages, "seq2tens": seq2tens.__version__}
    return "; ".join(f"{name} {version}" for name, version in named.items())


def commit() -> str:
    """The commit of the source tree, with "+" if files outside `results` differ; "" if there is no tree."""
    package = Path(seq2tens.__file__).parent
    root = package.parents[1]
    if not (root / ".git").exists() or package != root / "src" / "seq2tens":
        return ""
    try:
        short = _git(root, "rev-parse", "--short", "HEAD")
        changed = _git(root, "status", "--porcelain", "--", ".", ":!results")
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"{short}{'+' if changed else ''}"


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def peak_bytes() -> int:
    """The peak memory of this process."""
    status = Path("/proc/self/status")
    if status.exists():
        # On Linux, `ru_maxrss` includes the peak of the parent process; this value does not.
        height = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.MULTILINE)
        if height:
            return int(height[1]) * 1024
    import resource

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024


def parameters(network: nn.Module) -> int:
    """The number of trainable parameters."""
    return sum(p.numel() for p in network.parameters() if p.requires_grad)


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Call a function; return the seconds that it took and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def columns(threads: int, code: str) -> dict[str, Any]:
    """The last columns of a row in every table; `code` is the `commit` when the work began."""
    return {
        "peak_mib": round(peak_bytes() / 2**20, 1),
        "threads": threads,
        "versions": versions(),
        "commit": code,
        "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
