"""Where results go: looked at before the work begins, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seq2tens.cli._shell import UserError, refusing


def writable(path: Path, option: str) -> Path:
    """A file that can be written later: its folder must be there, and it must not be a folder."""
    if path.is_dir():
        raise UserError(f"`{option}` must be a file, got the folder {path}")
    if not path.parent.is_dir():
        raise UserError(f"`{option}` must lie in a folder that exists, got {path}")
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"`{option}` must lie in a folder that can be written to, got {path}")
    return path


def picture(path: Path | None, option: str) -> Path | None:
    """A file for a picture, if one is asked for."""
    if path is None:
        return None
    from seq2tens.plots import picture_suffix

    with refusing():
        picture_suffix(path)
    return writable(path, option)


def write_text(path: Path, text: str) -> None:
    """Write a file; one that was there stays if this fails."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Another file to write, which takes the place of this one in the end, or vanishes if that fails."""
    # A name of its own for every process: several may write into one folder.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with refusing(OSError):
            yield temporary
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
