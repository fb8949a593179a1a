"""Where a result comes from: versions, commit, and the memory it took."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import subprocess
import sys
from pathlib import Path

import seq2tens


def versions() -> str:
    """Versions of Python and of the packages that matter for a result."""
    found = {"python": platform.python_version()}
    found |= {name: importlib.metadata.version(name) for name in ("torch", "aeon")}
    found |= {"seq2tens": seq2tens.__version__}
    return "; ".join(f"{name} {version}" for name, version in found.items())


def commit() -> str:
    """The commit of the source tree, with "+" where files outside `results` differ; "" outside of one."""
    package = Path(seq2tens.__file__).parent
    root = package.parents[1]
    if not (root / ".git").exists() or package != root / "src" / "seq2tens":
        return ""
    try:
        found = _git(root, "rev-parse", "--short", "HEAD")
        changed = _git(root, "status", "--porcelain", "--", ".", ":!results")
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"{found}{'+' if changed else ''}"


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def peak_bytes() -> int:
    """Memory of this process at its height."""
    status = Path("/proc/self/status")
    if status.exists():
        # Linux passes the height of the parent on to a new program in `ru_maxrss`, but not here.
        found = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.MULTILINE)
        if found:
            return int(found[1]) * 1024
    import resource

    height = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return height if sys.platform == "darwin" else height * 1024
