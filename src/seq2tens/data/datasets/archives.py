"""Data sets by name: those in a folder of packed files, and the small ones that come with aeon."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from seq2tens._archives import ARCHIVES, bundled_files, packed_files
from seq2tens._checks import ArgumentError, choice
from seq2tens.data.labelled import Split
from seq2tens.data.readers import read_npz, read_ts


def load_dataset(name: str, folder: str | Path | None = None, *, archives: Sequence[str] = ARCHIVES) -> Split:
    """Load a data set by name, without downloading anything.

    Args:
        name: one of `available_datasets`.
        folder: folder to search for `tsc/<name>.npz`, `ucr/<name>.npz` and `uea/<name>.npz`, in this order,
            before the data that come with aeon (default: the environment variable SEQ2TENS_DATA).
        archives: which of the three to search, in this order.
    """
    loaders = _loaders(folder, archives)
    if name not in loaders:
        hint = "" if bundled_files() else "; more come with aeon: pip install aeon"
        known = ", ".join(sorted(loaders)) or "nothing (no folder given)"
        raise ArgumentError(f"`name` must be one of {known}, got {name!r}{hint}")
    return loaders[name]()


def available_datasets(folder: str | Path | None = None, *, archives: Sequence[str] = ARCHIVES) -> list[str]:
    """Return the names that `load_dataset` accepts."""
    return sorted(_loaders(folder, archives))


def _loaders(folder: str | Path | None, archives: Sequence[str]) -> dict[str, Callable[[], Split]]:
    for archive in archives:
        choice("archives", archive, ARCHIVES)
    bundled = {name: partial(_read_pair, *halves) for name, halves in bundled_files().items()}
    packed = {name: partial(read_npz, path) for name, path in packed_files(folder, archives).items()}
    return {**bundled, **packed}


def _read_pair(train: Path, test: Path) -> Split:
    return Split(read_ts(train), read_ts(test))
