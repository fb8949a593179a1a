"""Data sets by name: those in a folder of packed files, and the small ones that ship inside aeon."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from seq2tens._archives import ARCHIVES, bundled_files, packed_files
from seq2tens._checks import ArgumentError, choice
from seq2tens.data.labelled import Split
from seq2tens.data.readers import read_npz, read_ts


def load_dataset(name: str, folder: str | Path | None = None, *, archives: Sequence[str] = ARCHIVES) -> Split:
    """Load a data set by name, never over the network.

    Args:
        name: as in `available_datasets`.
        folder: searched for `tsc/<name>.npz`, `ucr/<name>.npz` and `uea/<name>.npz`, in this order, then the
            data that aeon brings along (default: the environment variable SEQ2TENS_DATA).
        archives: which of the three to search, the first one first.
    """
    loaders = _loaders(folder, archives)
    if name not in loaders:
        hint = "" if bundled_files() else "; more come with aeon: pip install aeon"
        known = ", ".join(sorted(loaders)) or "nothing (no folder given)"
        raise ArgumentError(f"`name` must be one of {known}, got {name!r}{hint}")
    return loaders[name]()


def available_datasets(folder: str | Path | None = None, *, archives: Sequence[str] = ARCHIVES) -> list[str]:
    """The names that `load_dataset` knows."""
    return sorted(_loaders(folder, archives))


def _loaders(folder: str | Path | None, archives: Sequence[str]) -> dict[str, Callable[[], Split]]:
    for archive in archives:
        choice("archives", archive, ARCHIVES)
    bundled = {name: partial(_read_pair, *halves) for name, halves in bundled_files().items()}
    packed = {name: partial(read_npz, path) for name, path in packed_files(folder, archives).items()}
    return {**bundled, **packed}


def _read_pair(train: Path, test: Path) -> Split:
    return Split(read_ts(train), read_ts(test))
