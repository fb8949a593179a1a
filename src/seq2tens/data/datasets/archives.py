"""Data sets by name: those in a folder of packed files, and the small ones that ship inside aeon."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from seq2tens._checks import ArgumentError, choice
from seq2tens.data.datasets._folders import data_folder
from seq2tens.data.labelled import Split
from seq2tens.data.readers import read_npz, read_ts

# Folders of packed files; the first that has a name wins, since archives split some data in different ways.
ARCHIVES = ("tsc", "ucr", "uea")


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
        hint = "" if _bundle() else "; more come with aeon: pip install aeon"
        known = ", ".join(sorted(loaders)) or "nothing (no folder given)"
        raise ArgumentError(f"`name` must be one of {known}, got {name!r}{hint}")
    return loaders[name]()


def available_datasets(folder: str | Path | None = None, *, archives: Sequence[str] = ARCHIVES) -> list[str]:
    """The names that `load_dataset` knows."""
    return sorted(_loaders(folder, archives))


def _loaders(folder: str | Path | None, archives: Sequence[str]) -> dict[str, Callable[[], Split]]:
    bundled = {path.stem.removesuffix("_TRAIN"): partial(_read_pair, path) for path in _bundle()}
    packed = {path.stem: partial(read_npz, path) for path in _packed_files(folder, archives)}
    return {**bundled, **packed}


def _packed_files(folder: str | Path | None, archives: Sequence[str]) -> list[Path]:
    """Those of the first archive last, where a dictionary keeps them."""
    for archive in archives:
        choice("archives", archive, ARCHIVES)
    home = data_folder(folder)
    return [] if home is None else [p for name in reversed(archives) for p in home.glob(f"{name}/*.npz")]


def _bundle() -> list[Path]:
    """The training halves inside aeon, found without importing it: that takes seconds, and could download."""
    spec = importlib.util.find_spec("aeon")
    if spec is None or not spec.submodule_search_locations:
        return []
    data = Path(spec.submodule_search_locations[0], "datasets", "data")
    return [path for path in data.glob("*/*_TRAIN.ts") if _test_half(path).exists()]


def _test_half(train: Path) -> Path:
    return train.with_name(train.name.replace("_TRAIN.ts", "_TEST.ts"))


def _read_pair(train: Path) -> Split:
    return Split(read_ts(train), read_ts(_test_half(train)))
