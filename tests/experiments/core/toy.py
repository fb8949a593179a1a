"""A small archive under names of the paper's data sets, and what runs are watched with."""

import os
import time
from pathlib import Path

import numpy as np

from seq2tens.experiments import Cell


def archive(folder, names=("LIBRAS", "ECG"), n_train=12, n_test=8, steps=9):
    """Waves of two speeds, of unequal lengths."""
    rng = np.random.default_rng(0)
    series, labels = [], []
    for i in range(n_train + n_test):
        clock = np.arange(rng.integers(steps - 3, steps + 1)) * (2.0 if i % 2 else 0.5)
        series.append(np.stack([np.sin(clock), np.cos(clock)], axis=1) + rng.normal(0, 0.1, (len(clock), 2)))
        labels.append(i % 2)
    (folder / "tsc").mkdir(parents=True, exist_ok=True)
    for name in names:
        np.savez(
            folder / "tsc" / f"{name}.npz",
            X=np.concatenate(series).astype(np.float32),
            offsets=np.cumsum([0, *map(len, series)]),
            y=np.array(labels),
            classes=np.array(["slow", "fast"]),
            n_train=n_train,
        )
    return folder


def random_cell(dataset="LIBRAS", seed=0):
    """The quickest kind of cell."""
    return Cell("tsc", dataset, "random-ls2t", seed, "-")


def workers_of(parent):
    """Process ids of the workers that a process has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes()
        except OSError:  # it has ended meanwhile
            continue
        if int(status[1]) == parent and b"seq2tens.experiments.core.worker" in command:
            found.append(int(folder.name))
    return found


def wait_for(condition, seconds=300):
    """What a condition gives once it holds; the machine may be busy."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("waited in vain")


def is_running(process):
    """Whether a process id is in use by a process that has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def environment(folder):
    """For a command that shall find the archive."""
    return {**os.environ, "SEQ2TENS_DATA": str(folder), "OMP_NUM_THREADS": "1"}
