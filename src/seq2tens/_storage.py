"""Tensors and a JSON document in one safetensors file, so that the two always agree.

A file is written under a temporary name, flushed to disk and then renamed, so that a file with the right name
is always complete. The next writer removes what a killed writer leaves behind.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from seq2tens import _checks as check

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# Prefix of the names of unfinished files.
TEMPORARY = ".seq2tens-"
Tensors = dict[str, Tensor]


class Saved(NamedTuple):
    """The content of a file."""

    tensors: Tensors
    document: dict[str, Any]


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file completely or not at all, see `replacing`."""
    with replacing(path) as file:
        file.write(content)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a new file that replaces `path` once it is complete; it is removed if writing fails.

    This is safe even if the machine stops or other processes write the same file. A link is followed, and the
    new file has the mode of the old one. If `path` is not a regular file, such as a pipe, it is written to
    directly.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    path = Path(os.path.realpath(path))
    remove_leftovers(path.parent, TEMPORARY)
    with new_file(path.parent, TEMPORARY) as file:
        if path.exists():
            shutil.copymode(path, file.name)
        yield file
        file.flush()
        os.fsync(file.fileno())
        if fcntl is None:
            file.close()  # Windows cannot rename an open file
        os.replace(file.name, path)
    sync_folder(path.parent)


@contextmanager
def new_file(folder: Path, prefix: str) -> Iterator[BinaryIO]:
    """Create a temporary file for this writer; if it has not been renamed at the end, it is removed."""
    while True:
        path = _unused(folder, prefix)
        with open(path, "xb") as file:
            _lock(file.fileno())
            if not _is_at(path, file.fileno()):  # removed as a leftover before it was locked
                continue
            try:
                yield file
            finally:
                file.close()
                path.unlink(missing_ok=True)
            return


@contextmanager
def new_folder(folder: Path, prefix: str) -> Iterator[Path]:
    """Create a temporary folder for this writer; if it has not been renamed at the end, it is removed."""
    while True:
        path = _unused(folder, prefix)
        path.mkdir()
        with _locked_folder(path) as ours:
            if not ours:  # removed as a leftover before it was locked
                continue
            try:
                yield path
            finally:
                shutil.rmtree(path, ignore_errors=True)
            return


def remove_leftovers(folder: Path, prefix: str) -> None:
    """Remove what killed writers have left behind; active writers hold a lock on their files."""
    if fcntl is None:
        return
    with suppress(OSError):
        for path in [entry for entry in folder.iterdir() if entry.name.startswith(prefix)]:
            with suppress(OSError):  # locked, or removed by another process
                _remove_unlocked(path)


@contextmanager
def exclusive(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold an exclusive lock on this path among processes; the lock file only exists meanwhile.

    Yields True, or False if `wait` is False and another process holds the lock.
    """
    while fcntl is not None:
        with open(path, "ab") as file:
            if not _lock(file.fileno(), wait):
                yield False
                return
            if not _is_at(path, file.fileno()):  # removed by the previous holder
                continue
            try:
                yield True
            finally:
                path.unlink(missing_ok=True)
            return
    yield True


def _unused(folder: Path, prefix: str) -> Path:
    return folder / f"{prefix}{secrets.token_hex(8)}"


def _lock(descriptor: int, wait: bool = True) -> bool:
    """Lock until the descriptor is closed or the process ends; return False if another holds the lock."""
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks, on which no leftovers are removed
            return True
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether this path still refers to the open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@contextmanager
def _locked_folder(folder: Path) -> Iterator[bool]:
    """Lock a folder; yield False if it was removed before it was locked."""
    if fcntl is None:
        yield True
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        yield False
        return
    try:
        _lock(descriptor)
        yield _is_at(folder, descriptor)
    finally:
        os.close(descriptor)


def _remove_unlocked(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Flush a folder to disk, so that a renaming in it is permanent; only POSIX can open folders."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def encode(saved: Saved) -> bytes:
    """Return the content of a file as bytes."""
    document = json.dumps(saved.document)
    metadata = {"document": document, "digest": digest(saved.tensors, document)}
    return safetensors.torch.save(saved.tensors, metadata)


def decode(content: bytes) -> Saved:
    """Read the content of a file; raise `ArgumentError` if it has been changed."""
    try:
        tensors = safetensors.torch.load(content)
    except safetensors.SafetensorError as error:
        raise check.ArgumentError(str(error)) from error
    metadata = _metadata(content)
    check.require(
        digest(tensors, metadata["document"]) == metadata["digest"], "the content does not match its digest"
    )
    return Saved(tensors, json.loads(metadata["document"]))


def _metadata(content: bytes) -> dict[str, str]:
    """Return the metadata of the header, which safetensors only reads from files, not from bytes."""
    size = int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8 : 8 + size]).get("__metadata__", {})
    check.require({"document", "digest"} <= set(metadata), "the header has no document")
    return metadata


def digest(tensors: Tensors, document: str) -> str:
    """Return a hash of the tensors, in any order, and the document."""
    total = hashlib.sha256(document.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()
