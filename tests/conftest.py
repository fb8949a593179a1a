import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings

# Same examples in every run, and no deadline: a shared machine makes time limits flaky.
settings.register_profile("seq2tens", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("seq2tens")
THREADS = int(os.environ.get("SEQ2TENS_TEST_THREADS", "1"))  # pytest-xdist already uses every core
if data := os.environ.pop("SEQ2TENS_DATA", None):
    if not Path(data).is_dir():
        raise pytest.UsageError(f"SEQ2TENS_DATA must name a folder that exists, got {data!r}")
    os.environ["SEQ2TENS_DATA"] = str(Path(data).resolve())  # some tests change to another folder
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a background job of a shell
    signal.signal(signal.SIGINT, signal.default_int_handler)  # or subprocesses of tests would ignore Ctrl-C


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests whose data files are missing, and set the same number of threads for every test."""
    torch.set_num_threads(THREADS)
    for mark in item.iter_markers("data"):
        folder = os.environ.get("SEQ2TENS_DATA")
        if not folder:
            pytest.skip("SEQ2TENS_DATA is not set")
        for path in mark.args:
            if not Path(folder, path).exists():
                pytest.skip(f"SEQ2TENS_DATA has no {path}")


@pytest.fixture
def reference():
    """Load reference results of the authors by file name; the test is marked with `data("../reference")`."""
    return lambda name: np.load(Path(os.environ["SEQ2TENS_DATA"], "..", "reference", name))
