"""Output files: checked before the work begins, and written atomically.

A regular file is replaced once the new one is complete; symbolic links are followed. Pipes, devices and
stdout are written to directly, because replacing them would cut off the processes that use them.
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
    """The destination of a result; created by `output`."""

    path: Path
    stdout: BinaryIO | None = None  # if the path stands for stdout

    @property
    def regular(self) -> bool:
        """Whether this is, or will be, a file that may be replaced, truncated and read again."""
        return self.stdout is None and not _written_through(self.path)

    @contextmanager
    def replacing(self) -> Iterator[BinaryIO]:
        """Open a temporary file, which replaces this one at the end or is removed if an error occurs."""
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

    def write(self, content: bytes | str, *, verbose: bool = True) -> None:
        """Write a result and say where it is; text is always encoded as UTF-8."""
        with self.replacing() as file:
            file.write(content.encode() if isinstance(content, str) else content)
        if verbose:
            self.print_path()

    def draw(self, figure: Figure) -> None:
        """Write a figure in the format of the suffix and say where it is."""
        from seq2tens import plots

        self.write(plots.encoded(figure, self.path))

    def print_path(self) -> None:
        """Say where the result is."""
        if self.stdout is None:
            typer.echo(f"saved {self.path}")

    def open(self) -> BinaryIO:
        """Open for writing piece by piece; only regular files are truncated."""
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
    """Check a path for a result that is written later.

    `-` is stdout; all other messages of the command then go to stderr. The suffix selects the format, so it
    must be one of `suffixes`, if there are any; pipes and devices may have any name.
    """
    if path.is_dir():
        raise UserError(f"`{option}` must be a file, got the folder {path}")
    if path == STDOUT or _is_open_as(path, 1):
        return Output(path, _claimed_stdout(option))
    if _written_through(path):
        if not os.access(path, os.W_OK):
            raise UserError(f"`{option}` must be writable, got {path}")
        return Output(path)
    if suffixes and path.suffix.lower() not in suffixes:
        raise UserError(f"`{option}` must end in {' or '.join(suffixes)}, got {path}")
    _check_folder_of(path, option)
    check_new([path], option, force=force)
    return Output(path)


def outputs(folder: Path, names: Sequence[str], option: str, *, force: bool) -> list[Output]:
    """Check several files of one folder, which is created if it does not exist."""
    check_new([folder / name for name in names], option, force=force)
    with refusing(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return [output(folder / name, option, force=True) for name in names]


def picture(path: Path | None, option: str, *, force: bool) -> Output | None:
    """Check the file for a figure, if the user wants one."""
    if path is None:
        return None
    if path.suffix.lower() not in PICTURES:
        raise UserError(f"`{option}` must end in {' or '.join(PICTURES)}, got {path}")
    return output(path, option, force=force)


def check_read_again(path: Path, option: str, suffixes: Sequence[str] = ()) -> None:
    """Require a regular file, because the command reads its contents before it replaces them."""
    if path == STDOUT or (_written_through(path) and not path.is_dir()):
        raise UserError(f"`{option}` must be a regular file, because it is read again, got {path}")
    output(path, option, suffixes, force=True)


def check_folder(folder: Path | None, option: str) -> None:
    """Refuse a path that is not a folder."""
    if folder == STDOUT:
        raise UserError(f"`{option}` must be a folder, got -, which stands for stdout")
    if folder is not None and folder.exists() and not folder.is_dir():
        raise UserError(f"`{option}` must be a folder, got the file {folder}")


def check_new(paths: Sequence[Path], option: str, *, force: bool) -> None:
    """Refuse files that exist already, unless they may be replaced."""
    for path in paths:
        if path.exists() and not force:
            raise UserError(f"`{option}` must be new, but {path} exists already; `--force` replaces it")


def _check_folder_of(path: Path, option: str) -> None:
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise UserError(f"`{option}` must be in an existing folder, got {path}")
    if not os.access(folder, os.W_OK):
        raise UserError(f"`{option}` must be in a writable folder, got {path}")


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
    """Reserve stdout for the result: until the command ends, everything else is printed to stderr."""
    if sys.stdout is sys.stderr:
        raise UserError(f"`{option}` must be a file, because another result goes to stdout")
    stream = typer.get_binary_stream("stdout")
    sys.stdout = sys.stderr
    return stream


def csv_line(cells: Sequence[object]) -> str:
    """Format cells as a line of CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()
