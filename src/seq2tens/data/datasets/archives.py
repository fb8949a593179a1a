"""Data sets by name: those in a folder of packed files, and the small ones that ship inside aeon."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from pathlib import Path

from seq2tens._checks import ArgumentError
from seq2tens.data.datasets._folders import data_folder
from seq2tens.data.labelled import Split
from seq2tens.data.readers import read_npz, read_ts


def load_dataset(name: str, folder: str | Path | None = None) -> Split:
    """Load a data set by name, never over the network.

    `folder` (default: the environment variable SEQ2TENS_DATA) is searched for `tsc/<name>.npz` first, then
    the data that aeon brings along.
    """
    loaders = _loaders(folder)
    if name not in loaders:
        hint = "" if _bundle() else "; more come with aeon: pip install aeon"
        known = ", ".join(sorted(loaders)) or "nothing (no folder given)"
        raise ArgumentError(f"`name` must be one of {known}, got {name!r}{hint}")
    return loaders[name]()


def available_datasets(folder: str | Path | None = None) -> list[str]:
    """The names that `load_dataset` knows."""
    return sorted(_loaders(folder))


def _loaders(folder: str | Path | None) -> dict[str, Callable[[], Split]]:
    bundled = {path.stem.removesuffix("_TRAIN"): partial(_read_pair, path) for path in _bundle()}
    packed = {path.stem: partial(read_npz, path) for path in _packed_files(folder)}
    return {**bundled, **packed}


def _packed_files(folder: str | Path | None) -> list[Path]:
    home = data_folder(folder)
    return [] if home is None else list(home.glob("tsc/*.npz"))


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
