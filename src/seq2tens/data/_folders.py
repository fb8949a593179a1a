"""Where the files of a data set are."""

from __future__ import annotations

import os
from pathlib import Path

from seq2tens._checks import require
from seq2tens.data.archives import ENVIRONMENT


def home(folder: str | Path | None, name: str) -> Path:
    """The folder with the files: the one given, or the folder `name` inside it."""
    source = "folder" if folder is not None else ENVIRONMENT
    chosen = folder if folder is not None else os.environ.get(ENVIRONMENT)
    require(bool(chosen), f"`folder` must be given where the variable {ENVIRONMENT} is not set, got None")
    path = Path(str(chosen))
    require(path.is_dir(), f"`{source}` must be a folder that exists, got {str(path)!r}")
    inside = path / name
    return inside if inside.is_dir() else path


def existing(path: Path) -> Path:
    """The path of a file that a data set cannot do without."""
    require(path.is_file(), f"`folder` must hold {path.name}, got {str(path.parent)!r}")
    return path
