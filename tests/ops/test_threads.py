"""Threads that OpenMP does not give, or that somebody else has taken."""

import os
import subprocess
import sys

import pytest

FEWER = """
import torch
from fused import OPERATIONS, assert_same_bits, results_of
torch.set_num_threads(1)
alone = results_of(OPERATIONS)
torch.set_num_threads(2)
assert_same_bits(results_of(OPERATIONS), alone)
print("done")
"""

INSIDE_A_REGION = """
import ctypes, glob, pathlib, torch
from fused import OPERATIONS, assert_same_bits, results_of
torch.set_num_threads(1)
alone = results_of(OPERATIONS)
torch.set_num_threads(2)
(path,) = glob.glob(str(pathlib.Path(torch.__file__).parent / "lib" / "libgomp*.so*"))
found = []
team = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: found.append(results_of(OPERATIONS)))
ctypes.CDLL(path).GOMP_parallel(team, None, 2, 0)
assert len(found) == 2
for results in found:
    assert_same_bits(results, alone)
print("done")
"""


def run(code, **environment):
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
    )
    assert result.stdout.strip() == "done", f"exit code {result.returncode}\n{result.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("variable", ["OMP_THREAD_LIMIT=1", "OMP_DYNAMIC=true", "OMP_MAX_ACTIVE_LEVELS=0"])
def test_fewer_threads_than_asked_for(variable):
    run(FEWER, **dict([variable.split("=")]))


@pytest.mark.slow
def test_a_call_from_a_parallel_region():
    run(INSIDE_A_REGION)
