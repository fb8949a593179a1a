"""Tensors and a JSON document in one safetensors file, so that the two always agree.

A file is written under a name of the writer's own, forced to disk and then renamed, so that a file with the
right name is complete whatever happens. What a killed writer leaves behind, the next one removes.
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

# How the names of unfinished files begin.
TEMPORARY = ".seq2tens-"
Tensors = dict[str, Tensor]


class Saved(NamedTuple):
    """What a file holds."""

    tensors: Tensors
    document: dict[str, Any]


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that is complete or as it was, see `replacing`."""
    with replacing(path) as file:
        file.write(content)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of another once it is complete, even if the machine stops or
    others write it as well, or vanishes if that fails.

    A link is followed, and a file that is replaced keeps its mode; what is no file, such as a pipe, is
    written to.
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
            file.close()  # there, an open file cannot be renamed
        os.replace(file.name, path)
    sync_folder(path.parent)


@contextmanager
def new_file(folder: Path, prefix: str) -> Iterator[BinaryIO]:
    """A file of this writer's own; if it still has its name at the end, it is removed."""
    while True:
        path = _unused(folder, prefix)
        with open(path, "xb") as file:
            _lock(file.fileno())
            if not _is_at(path, file.fileno()):  # taken for a leftover before it was locked
                continue
            try:
                yield file
            finally:
                file.close()
                path.unlink(missing_ok=True)
            return


@contextmanager
def new_folder(folder: Path, prefix: str) -> Iterator[Path]:
    """A folder of this writer's own; if it still has its name at the end, it is removed."""
    while True:
        path = _unused(folder, prefix)
        path.mkdir()
        with _locked_folder(path) as ours:
            if not ours:  # taken for a leftover before it was locked
                continue
            try:
                yield path
            finally:
                shutil.rmtree(path, ignore_errors=True)
            return


def remove_leftovers(folder: Path, prefix: str) -> None:
    """Remove what writers that were killed have left behind; those at work hold a lock on theirs."""
    if fcntl is None:
        return
    with suppress(OSError):
        for path in [entry for entry in folder.iterdir() if entry.name.startswith(prefix)]:
            with suppress(OSError):  # locked, or another process was quicker
                _remove_unlocked(path)


@contextmanager
def exclusive(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Be the only process in here with this path; the file is there only meanwhile.

    True, or, without `wait`, False where there is another one.
    """
    while fcntl is not None:
        with open(path, "ab") as file:
            if not _lock(file.fileno(), wait):
                yield False
                return
            if not _is_at(path, file.fileno()):  # removed by the one before
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
    """Until the descriptor is closed, or its process ends in whatever way; False if another has the lock."""
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks; there, no leftovers are removed
            return True
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether an open file has this name, not another file or none."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@contextmanager
def _locked_folder(folder: Path) -> Iterator[bool]:
    """True, or False where the folder was removed before it was locked."""
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
    """A renaming is only on disk once the folder is; not every system can open one."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def encode(saved: Saved) -> bytes:
    """The bytes of a file."""
    document = json.dumps(saved.document)
    metadata = {"document": document, "digest": digest(saved.tensors, document)}
    return safetensors.torch.save(saved.tensors, metadata)


def decode(content: bytes) -> Saved:
    """What the bytes hold; `ArgumentError` if they have been changed."""
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
    """The header's free entries; safetensors reads them from files only, not from bytes."""
    size = int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8 : 8 + size]).get("__metadata__", {})
    check.require({"document", "digest"} <= set(metadata), "the header has no document")
    return metadata


def digest(tensors: Tensors, document: str) -> str:
    """A hash of all there is, whatever the order of the tensors."""
    total = hashlib.sha256(document.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()
