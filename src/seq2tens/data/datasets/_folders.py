"""Where the files of a data set are."""

from __future__ import annotations

from pathlib import Path

from seq2tens._archives import ENVIRONMENT, data_folder
from seq2tens._checks import ArgumentError, require

__all__ = ["ENVIRONMENT", "data_folder", "dataset_folder", "existing"]


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
