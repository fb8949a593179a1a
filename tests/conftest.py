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
torch.set_num_threads(1)  # pytest-xdist already uses every core
if "SEQ2TENS_DATA" in os.environ:  # some tests change to another folder
    os.environ["SEQ2TENS_DATA"] = str(Path(os.environ["SEQ2TENS_DATA"]).resolve())
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs in its background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # else processes of tests would ignore Ctrl-C


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _reference_folder() -> Path | None:
    data = os.environ.get("SEQ2TENS_DATA")
    folder = Path(data).parent / "reference" if data else None
    return folder if folder and folder.is_dir() else None


@pytest.fixture
def reference():
    """Load a file of the authors' numbers by name; skip where the files are absent."""
    folder = _reference_folder()
    if folder is None:
        pytest.skip("SEQ2TENS_DATA does not point beside a folder of reference values")
    return lambda name: np.load(folder / name)
