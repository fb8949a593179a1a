"""Locations of data sets: packed files in a folder, and the small ones bundled with aeon.

Only file names are read, so that the command line can report a typo before anything heavy is imported.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path

from seq2tens._errors import ArgumentError

ENVIRONMENT = "SEQ2TENS_DATA"
# Folders of packed files. Archives split some data sets differently; the first folder with a name wins.
ARCHIVES = ("tsc", "ucr", "uea")
TRAIN, TEST = "_TRAIN.ts", "_TEST.ts"


def data_folder(folder: str | Path | None) -> Path | None:
    """Return the folder of data sets: the argument, or else the environment variable; None without either."""
    source = "folder" if folder is not None else ENVIRONMENT
    chosen = folder if folder is not None else os.environ.get(ENVIRONMENT)
    if not chosen:
        return None
    if not Path(chosen).is_dir():
        raise ArgumentError(f"`{source}` must be a folder that exists, got {str(chosen)!r}")
    return Path(chosen)


def packed_files(folder: str | Path | None, archives: Sequence[str] = ARCHIVES) -> dict[str, Path]:
    """Return the files of packed data sets by name."""
    home = data_folder(folder)
    files = [] if home is None else [p for name in reversed(archives) for p in home.glob(f"{name}/*.npz")]
    return {path.stem: path for path in files}  # the first archive comes last, so it takes precedence


def bundled_files() -> dict[str, tuple[Path, Path]]:
    """Return the training and test files of the data sets bundled with aeon, by name.

    They are found without importing aeon, which takes seconds and could start a download.
    """
    spec = importlib.util.find_spec("aeon")
    homes = [] if spec is None else spec.submodule_search_locations or []
    trains = [path for home in homes for path in Path(home, "datasets", "data").glob(f"*/*{TRAIN}")]
    pairs = [(path, path.with_name(path.name.removesuffix(TRAIN) + TEST)) for path in trains]
    return {train.name.removesuffix(TRAIN): (train, test) for train, test in pairs if test.exists()}
