"""The folder of a saved model: its files, their digests, and how a new one takes the place of an old one."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import safetensors.torch

from seq2tens._checks import ArgumentError, require
from seq2tens._storage import (
    Tensors,
    digest,
    exclusive,
    new_folder,
    remove_leftovers,
    sync_folder,
    write_atomically,
)
from seq2tens.estimators.saving.card import model_card

# Format 1 had a digest of the tensors only; both are read.
FORMAT, FORMATS = 2, (1, 2)
TENSORS, DOCUMENT = "model.safetensors", "model.json"
# For people: it is written and never read, so it may be edited.
CARD = "README.md"
KEYS = {"format", "class", "params", "facts", "notes", "digest", "versions"}
# Bytes of the document; the tensors may have any size.
LARGEST_DOCUMENT = 2**28


class SavedModel(NamedTuple):
    """What a folder holds."""

    folder: Path
    document: dict[str, Any]
    tensors: Tensors


def write(folder: Path, document: dict[str, Any], tensors: Tensors) -> None:
    """Write all files; the document, which has no format yet, is given one and the digests of all."""
    content = safetensors.torch.save(tensors)
    # As it will be read: JSON has only strings for keys.
    document = json.loads(json.dumps({"format": FORMAT, **document, "digest": {TENSORS: _sha256(content)}}))
    document["digest"][DOCUMENT] = _document_digest(document)
    text = json.dumps(document, indent=1).encode()
    require(
        len(text) <= LARGEST_DOCUMENT,
        f"a saved model must have at most {LARGEST_DOCUMENT} bytes of arguments, facts and `notes`, "
        f"got {len(text)}",
    )
    write_atomically(folder / TENSORS, content)
    write_atomically(folder / DOCUMENT, text)
    write_atomically(folder / CARD, model_card(document).encode())


def read(target: Path) -> SavedModel:
    """A model and its digests checked; where another took its place meanwhile, that one."""
    while True:
        folder = _whole(target)
        before = _identity(folder)
        try:
            document = _read_document(folder)
            return SavedModel(folder, document, _read_tensors(folder, document))
        except (ArgumentError, FileNotFoundError):
            if _identity(_whole(target)) == before:
                raise


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A new folder to be filled, which then takes the place of the one that was there."""
    _check_target(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{target.name}.saving-"
    remove_leftovers(target.parent, prefix)
    with new_folder(target.parent, prefix) as new:
        yield new
        with exclusive(target.with_name(f"{prefix}lock")):
            _put_in_place(new, target)


def _previous(target: Path) -> Path:
    """Where the old folder waits while the new one takes its place."""
    return target.with_name(f".{target.name}.previous")


def _check_target(target: Path) -> None:
    """Only a saved model may be overwritten: its folder is removed in the end."""
    if not target.exists():
        return
    require(target.is_dir(), f"`path` must be a folder, got the file {target}")
    others = sorted({entry.name for entry in target.iterdir()} - {TENSORS, DOCUMENT, CARD})
    require(
        not others,
        f"`path` must be new or hold a saved model only, got {target} with {', '.join(others[:5])}",
    )


def _put_in_place(new: Path, target: Path) -> None:
    """Exchange folders. There is no moment without one: what was moved aside is found by `read`."""
    previous = _previous(target)
    if target.exists():
        _copy_modes(target, new)
        shutil.rmtree(previous, ignore_errors=True)
        target.rename(previous)
    try:
        new.rename(target)
    except OSError:
        if previous.exists():
            previous.rename(target)
        raise
    sync_folder(target.parent)
    shutil.rmtree(previous, ignore_errors=True)


def _copy_modes(old: Path, new: Path) -> None:
    for name in ("", TENSORS, DOCUMENT, CARD):
        if (old / name).exists():
            shutil.copymode(old / name, new / name)


def _whole(folder: Path) -> Path:
    """The folder, or what was there before a process was killed while it exchanged the two."""
    return _previous(folder) if not folder.exists() and _previous(folder).exists() else folder


def _identity(folder: Path) -> tuple[int, int, int] | None:
    """Tells a folder from another one that had its name before."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _read_document(folder: Path) -> dict[str, Any]:
    path = folder / DOCUMENT
    require(path.is_file(), f"`path` must be the folder of a saved model, got {folder} without {DOCUMENT}")
    size = path.stat().st_size
    require(
        size <= LARGEST_DOCUMENT,
        _unreadable(path, f"it must have at most {LARGEST_DOCUMENT} bytes, got {size}"),
    )
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ArgumentError(_unreadable(path, error)) from error
    ours = isinstance(document, dict) and set(document) == KEYS
    require(ours, f"`path` must be the folder of a saved model, but {path} is something else")
    require(
        document["format"] in FORMATS,
        f"{path} must have format {' or '.join(map(str, FORMATS))}, got {document['format']}",
    )
    if document["format"] > 1:
        _check_document(document, path)
    return document


def _check_document(document: dict[str, Any], path: Path) -> None:
    digests = document["digest"]
    whole = isinstance(digests, dict) and set(digests) == {TENSORS, DOCUMENT}
    require(whole and digests.pop(DOCUMENT) == _document_digest(document), _changed(path))


def _read_tensors(folder: Path, document: dict[str, Any]) -> Tensors:
    path, expected = folder / TENSORS, document["digest"]
    require(path.is_file(), f"`path` must hold a complete model, got {folder} without {TENSORS}")
    content = path.read_bytes()
    if document["format"] > 1:
        require(_sha256(content) == expected[TENSORS], _changed(path))
    try:
        tensors = safetensors.torch.load(content)
    except safetensors.SafetensorError as error:
        raise ArgumentError(_unreadable(path, error)) from error
    require(document["format"] > 1 or digest(tensors, "") == expected, _changed(path))
    return tensors


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _document_digest(document: dict[str, Any]) -> str:
    """Of all but itself."""
    return _sha256(json.dumps(document, sort_keys=True).encode())


def _unreadable(path: Path, reason: object) -> str:
    return f"`path` must hold a complete model, but {path} cannot be read: {reason}"


def _changed(path: Path) -> str:
    return _unreadable(path, "it is not as it was saved, its digest differs")
