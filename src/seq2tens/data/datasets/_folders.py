"""Location of the files of a data set."""

from __future__ import annotations

from pathlib import Path

from seq2tens._archives import ENVIRONMENT, data_folder
from seq2tens._checks import ArgumentError, require

__all__ = ["ENVIRONMENT", "data_folder", "dataset_folder", "existing_file"]


def dataset_folder(folder: str | Path | None, name: str) -> Path:
    """Return the folder with the files: the folder `name` inside `folder`, or `folder` itself."""
    path = data_folder(folder)
    if path is None:
        message = f"`folder` must be given if the variable {ENVIRONMENT} is not set, got {folder!r}"
        raise ArgumentError(message)
    inside = path / name
    return inside if inside.is_dir() else path


def existing_file(path: Path) -> Path:
    """Return the path after checking that the file exists."""
    require(path.is_file(), f"`folder` must hold {path.name}, got {str(path.parent)!r}")
    return path
