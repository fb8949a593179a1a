"""The folder of a saved model: its files, their digests, and its atomic replacement."""

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

# Format 1 had a digest of the tensors only; both formats can be read.
FORMAT, FORMATS = 2, (1, 2)
TENSORS, DOCUMENT = "model.safetensors", "model.json"
# For people: it is never read by the library, so it may be edited.
CARD = "README.md"
KEYS = {"format", "class", "params", "facts", "notes", "digest", "versions"}
# Largest size of the document in bytes; the tensors may have any size.
LARGEST_DOCUMENT = 2**28


class SavedModel(NamedTuple):
    """Content of the folder of a saved model."""

    folder: Path
    document: dict[str, Any]
    tensors: Tensors


def write(folder: Path, document: dict[str, Any], tensors: Tensors) -> None:
    """Write all files; the format and the digests are added to the document."""
    content = safetensors.torch.save(tensors)
    # Hash what will be read: JSON turns all keys into strings.
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
    """Read a model and check its digests; if it is replaced meanwhile, read the new one."""
    while True:
        folder = _complete_folder(target)
        before = _identity(folder)
        try:
            document = _read_document(folder)
            return SavedModel(folder, document, _read_tensors(folder, document))
        except (ArgumentError, FileNotFoundError):
            if _identity(_complete_folder(target)) == before:
                raise


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield a new folder to be filled, which then replaces the target."""
    _check_target(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{target.name}.saving-"
    remove_leftovers(target.parent, prefix)
    with new_folder(target.parent, prefix) as new:
        yield new
        with exclusive(target.with_name(f"{prefix}lock")):
            _replace_folder(new, target)


def _previous(target: Path) -> Path:
    """Return the path of the old folder while the new one replaces it."""
    return target.with_name(f".{target.name}.previous")


def _check_target(target: Path) -> None:
    """Require that nothing but a saved model is overwritten, since the old folder is removed."""
    if not target.exists():
        return
    require(target.is_dir(), f"`path` must be a folder, got the file {target}")
    others = sorted({entry.name for entry in target.iterdir()} - {TENSORS, DOCUMENT, CARD})
    require(
        not others,
        f"`path` must be new or hold a saved model only, got {target} with {', '.join(others[:5])}",
    )


def _replace_folder(new: Path, target: Path) -> None:
    """Replace the target by the new folder; meanwhile `read` finds the old one, which is moved aside."""
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


def _complete_folder(folder: Path) -> Path:
    """Return the folder, or the previous one if a process was killed while replacing it."""
    return _previous(folder) if not folder.exists() and _previous(folder).exists() else folder


def _identity(folder: Path) -> tuple[int, int, int] | None:
    """Return a value that differs between a folder and an earlier one of the same name."""
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
    is_saved_model = isinstance(document, dict) and set(document) == KEYS
    require(is_saved_model, f"`path` must be the folder of a saved model, but {path} is something else")
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
    """Return the digest of the document, which must not contain it yet."""
    return _sha256(json.dumps(document, sort_keys=True).encode())


def _unreadable(path: Path, reason: object) -> str:
    return f"`path` must hold a complete model, but {path} cannot be read: {reason}"


def _changed(path: Path) -> str:
    return _unreadable(path, "it was changed after it was saved, its digest differs")
