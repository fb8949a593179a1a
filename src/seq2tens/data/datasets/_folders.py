"""Where the files of a data set are."""

from __future__ import annotations

import os
from pathlib import Path

from seq2tens._checks import ArgumentError, require

ENVIRONMENT = "SEQ2TENS_DATA"


def data_folder(folder: str | Path | None) -> Path | None:
    """The folder of data sets: the one given, or that of the environment variable; None without either."""
    source = "folder" if folder is not None else ENVIRONMENT
    chosen = folder if folder is not None else os.environ.get(ENVIRONMENT)
    if not chosen:
        return None
    require(Path(chosen).is_dir(), f"`{source}` must be a folder that exists, got {str(chosen)!r}")
    return Path(chosen)


def dataset_folder(folder: str | Path | None, name: str) -> Path:
    """The folder with the files: that of all data sets, or the folder `name` inside it."""
    path = data_folder(folder)
    if path is None:
        message = f"`folder` must be given where the variable {ENVIRONMENT} is not set, got {folder!r}"
        raise ArgumentError(message)
    inside = path / name
    return inside if inside.is_dir() else path


def existing(path: Path) -> Path:
    """The path of a file that a data set cannot do without."""
    require(path.is_file(), f"`folder` must hold {path.name}, got {str(path.parent)!r}")
    return path
