"""Where results go: looked at before the work begins, written whole or not at all.

A regular file is replaced once the new one is whole, through symbolic links. A pipe, a device and stdout are
written to as they are: replacing them would take them away from those who use them.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Annotated, BinaryIO

import typer

from seq2tens.cli._options import flag
from seq2tens.cli._shell import UserError, refusing

if TYPE_CHECKING:  # importing it takes seconds
    from matplotlib.figure import Figure

STDOUT = Path("-")
PICTURES = (".png", ".svg", ".pdf")
Force = Annotated[bool, flag("--force", "Overwrite existing files.")]


@dataclass(frozen=True)
class Output:
    """A place for a result, see `output`."""

    path: Path
    stdout: BinaryIO | None = None  # where the path stands for it

    @property
    def regular(self) -> bool:
        """Whether there is, or will be, a file that may be replaced, cut and read again."""
        return self.stdout is None and not _written_through(self.path)

    @contextmanager
    def replacing(self) -> Iterator[BinaryIO]:
        """Another file to write, which takes the place of this one in the end, or vanishes if that fails."""
        from seq2tens import _storage

        with refusing(OSError):
            if self.regular:
                with _storage.replacing(self.path) as file:
                    yield file
                return
            with TemporaryFile() as file:
                yield file
                file.seek(0)
                self._write_through(file)

    def write(self, content: bytes | str, *, tell: bool = True) -> None:
        """Write a result and say where it is; a text is in one encoding everywhere."""
        with self.replacing() as file:
            file.write(content.encode() if isinstance(content, str) else content)
        if tell:
            self.tell()

    def draw(self, figure: Figure) -> None:
        """Write a picture, by the suffix, and say where it is."""
        from seq2tens import plots

        self.write(plots.encoded(figure, self.path))

    def tell(self) -> None:
        """Say where the result is."""
        if self.stdout is None:
            typer.echo(f"saved {self.path}")

    def open(self) -> BinaryIO:
        """For results that are written as they come; what is no regular file is never cut."""
        return self.stdout or self.path.open("wb" if self.regular else "ab")

    def _write_through(self, content: IO[bytes]) -> None:
        target = self.open()
        try:
            shutil.copyfileobj(content, target)
            target.flush()
        finally:
            if target is not self.stdout:
                target.close()


def output(path: Path, option: str, suffixes: Sequence[str] = (), *, force: bool = False) -> Output:
    """A file that can be written later; `-` is stdout, and what else the verb says then goes to stderr.

    The suffix says which format is meant, so it must be a known one if there are any; what is written
    through may have any name.
    """
    if path.is_dir():
        raise UserError(f"`{option}` must be a file, got the folder {path}")
    if path == STDOUT or _is_open_as(path, 1):
        return Output(path, _claimed_stdout(option))
    if _written_through(path):
        if not os.access(path, os.W_OK):
            raise UserError(f"`{option}` must be a place that can be written to, got {path}")
        return Output(path)
    if suffixes and path.suffix.lower() not in suffixes:
        raise UserError(f"`{option}` must end in {' or '.join(suffixes)}, got {path}")
    _check_folder_of(path, option)
    check_new([path], option, force=force)
    return Output(path)


def outputs(folder: Path, names: Sequence[str], option: str, *, force: bool) -> list[Output]:
    """Files of a folder that is made now unless it is there."""
    check_new([folder / name for name in names], option, force=force)
    with refusing(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return [output(folder / name, option, force=True) for name in names]


def picture(path: Path | None, option: str, *, force: bool) -> Output | None:
    """A file for a picture, if one is asked for."""
    if path is None:
        return None
    if path.suffix.lower() not in PICTURES:
        raise UserError(f"`{option}` must end in {' or '.join(PICTURES)}, got {path}")
    return output(path, option, force=force)


def check_read_again(path: Path, option: str, suffixes: Sequence[str] = ()) -> None:
    """Require a file that the verb reads before it writes, so that nothing in it is lost."""
    if path == STDOUT or (_written_through(path) and not path.is_dir()):
        raise UserError(f"`{option}` must be a regular file, because it is read again, got {path}")
    output(path, option, suffixes, force=True)


def check_folder(folder: Path | None, option: str) -> None:
    """Refuse what is no folder where one is asked for."""
    if folder == STDOUT:
        raise UserError(f"`{option}` must be a folder, got -, which stands for stdout")
    if folder is not None and folder.exists() and not folder.is_dir():
        raise UserError(f"`{option}` must be a folder, got the file {folder}")


def check_new(paths: Sequence[Path], option: str, *, force: bool) -> None:
    """Refuse files that are there, unless they may be replaced."""
    for path in paths:
        if path.exists() and not force:
            raise UserError(f"`{option}` must be new, but {path} is there already; `--force` replaces it")


def _check_folder_of(path: Path, option: str) -> None:
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise UserError(f"`{option}` must lie in a folder that exists, got {path}")
    if not os.access(folder, os.W_OK):
        raise UserError(f"`{option}` must lie in a folder that can be written to, got {path}")


def _written_through(path: Path) -> bool:
    """Whether this is a pipe or a device, or a file that is open as stdout or stderr."""
    if not path.exists():
        return False
    return not stat.S_ISREG(path.stat().st_mode) or _is_open_as(path, 1) or _is_open_as(path, 2)


def _is_open_as(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except OSError:  # there is no such file, or it is closed
        return False


def _claimed_stdout(option: str) -> BinaryIO:
    """Stdout for the result; from now on, what is printed goes to stderr, until the verb ends."""
    if sys.stdout is sys.stderr:
        raise UserError(f"`{option}` must be a file, because another result goes to stdout")
    stream = typer.get_binary_stream("stdout")
    sys.stdout = sys.stderr
    return stream


def csv_line(cells: Sequence[object]) -> str:
    """Cells as a line of CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()
