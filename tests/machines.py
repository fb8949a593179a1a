"""Runs the tests of the numerical parts on machines that this one can emulate: `make test-machines`.

    python tests/machines.py [NAME ...]

A machine is a set of environment variables. Two also need a modified copy of torch or of the package.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
TESTS = ("ops", "functional", "nn", "algebra")
# Triton's interpreter and the compiler do not depend on the machine, and tests of derivatives take long.
# torch's own bfloat16 convolutions hang if OpenMP grants fewer threads than torch requests.
LEFT_OUT = "not triton and not compile and not test_derivatives and not autocast"
PATIENCE = 1200  # seconds, many times what is needed, to detect deadlocks
THREE = {"SEQ2TENS_TEST_THREADS": "3"}

# Machines that concern threads run with three of them, since one would make no difference.
MACHINES = {
    "one thread": {"SEQ2TENS_TEST_THREADS": "1"},
    "three threads": THREE,
    "torch without vector instructions": {"ATEN_CPU_CAPABILITY": "default"},
    "OpenMP that adapts to the load": {"OMP_DYNAMIC": "true", **THREE},
    "OpenMP that grants one thread": {"OMP_THREAD_LIMIT": "1", **THREE},
    "MKL for any processor": {"MKL_CBWR": "COMPATIBLE"},
    "MKL for AVX2": {"MKL_CBWR": "AVX2"},
    "kernels for any processor": {"SEQ2TENS_ISA": "x86-64-v2"},
    "kernels for AVX2": {"SEQ2TENS_ISA": "x86-64-v3"},
    "without libgomp": THREE,
    "read-only installation": {},
}


class NotPossible(Exception):
    """Raised if this machine cannot emulate another one."""


@dataclass
class Setting:
    """Where and how tests run."""

    environment: dict[str, str]
    root: Path = ROOT
    packages: tuple[Path, ...] = ()
    launcher: tuple[str, ...] = ()


def without_libgomp(setting: Setting, scratch: Path) -> None:
    """Copy torch without its libgomp, so that it loads the system's, as builds of some distributions do."""
    import torch

    installed, copy, system = Path(torch.__file__).parent, scratch / "site" / "torch", scratch / "system"
    for folder in (copy, system):
        folder.mkdir(parents=True)
    for path in installed.iterdir():
        (copy / path.name).symlink_to(path)
    (copy / "lib").unlink()
    (copy / "lib").mkdir()
    for path in (installed / "lib").iterdir():
        folder = system if path.name.startswith("libgomp") else copy / "lib"
        (folder / path.name).symlink_to(path)
    setting.environment["LD_LIBRARY_PATH"] = str(system)
    setting.packages = (copy.parent,)


def read_only(setting: Setting, scratch: Path) -> None:
    """Copy the package, and make the copy and the home folder read-only."""
    setting.root, home = scratch / "installed", scratch / "home"
    for name in ("csrc", "src", "tests"):
        shutil.copytree(ROOT / name, setting.root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", setting.root)
    home.mkdir()
    for path in (*setting.root.rglob("*"), setting.root, home):
        path.chmod(path.stat().st_mode & ~0o222)
    setting.environment |= {"HOME": str(home), "XDG_CACHE_HOME": str(home)}
    if os.geteuid() == 0:  # root can write everywhere unless it drops this capability
        if shutil.which("setpriv") is None:
            raise NotPossible("root may write everywhere, and there is no setpriv to take that right away")
        setting.launcher = ("setpriv", "--inh-caps=-all", "--bounding-set=-all")


PREPARE: dict[str, Callable[[Setting, Path], None]] = {
    "without libgomp": without_libgomp,
    "read-only installation": read_only,
}


def run_tests(setting: Setting, report: Path) -> tuple[bool, str]:
    """Run the fast tests in one process; return whether they passed, and their output.

    The package of this setting takes precedence over an installed one.
    """
    chosen = ["-m", "not slow", "-k", LEFT_OUT, *(f"tests/{name}" for name in TESTS)]
    options = ["-q", "-rf", "--tb=short", "-p", "no:cacheprovider", f"--junitxml={report}"]
    options += ["-o", f"faulthandler_timeout={PATIENCE // 3}"]  # reports where a test hangs
    path = os.pathsep.join(map(str, (*setting.packages, setting.root / "src")))
    with subprocess.Popen(
        [*setting.launcher, sys.executable, "-m", "pytest", *options, *chosen],
        cwd=setting.root,
        env={**os.environ, **setting.environment, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            printed, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            printed, _ = process.communicate()
    return process.returncode == 0, printed


def counts(report: Path) -> str:
    """Return the numbers of passed, failed and skipped tests in the report of pytest."""
    if not report.exists():
        return "crashed or stood still"
    (suite,) = ElementTree.parse(report).getroot().iter("testsuite")
    n, failed, errors, skipped = (int(suite.get(k, 0)) for k in ("tests", "failures", "errors", "skipped"))
    return f"{n - failed - errors - skipped} passed, {failed + errors} failed, {skipped} skipped"


def visit(name: str) -> bool:
    """Run the tests on the machine of this name, print a summary, and return whether they passed."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="seq2tens-machine-") as folder:
        scratch = Path(folder)
        setting = Setting(dict(MACHINES[name]))
        try:
            PREPARE.get(name, lambda setting, scratch: None)(setting, scratch)
        except NotPossible as reason:
            print(f"{name}: left out, {reason}", flush=True)
            return True
        passed, printed = run_tests(setting, scratch / "report.xml")
        line = f"{name}: {counts(scratch / 'report.xml')}, {time.monotonic() - started:.0f} s"
    print(line if passed else "\n".join([line, *printed.splitlines()[-60:]]), flush=True)
    return passed


def main(names: list[str]) -> int:
    unknown = sorted(set(names) - MACHINES.keys())
    if unknown:
        raise SystemExit(f"machines are {', '.join(MACHINES)}, got {', '.join(unknown)}")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        passed = list(pool.map(visit, names or MACHINES))
    print(f"{sum(passed)} of {len(passed)} machines passed")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
