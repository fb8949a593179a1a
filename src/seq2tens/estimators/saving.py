"""Saved estimators: a folder with tensors and a JSON document, written completely or not at all."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import safetensors
import safetensors.torch
from sklearn.exceptions import NotFittedError

from seq2tens._checks import ArgumentError, require
from seq2tens.estimators import _plain
from seq2tens.training.checkpoint import Tensors, digest, write_atomically

FORMAT = 1
TENSORS, DOCUMENT = "model.safetensors", "model.json"
KEYS = {"format", "class", "params", "facts", "notes", "digest", "versions"}
PACKAGES = ("seq2tens", "torch", "numpy", "aeon", "scikit-learn")

Estimator = TypeVar("Estimator", bound="Storable")


class Storable:
    """An estimator that can be saved without pickle.

    A subclass gives what it has learned as tensors and as facts (JSON), and takes them back in `_restore`.
    """

    _known: ClassVar[dict[str, type[Any]]] = {}
    is_fitted: bool
    notes_: dict[str, Any]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        Storable._known[cls.__name__] = cls

    def save(self, path: str | Path, notes: dict[str, Any] | None = None) -> None:
        """Write the fitted estimator to a folder; one saved there before stays until the new one is whole.

        `notes` is JSON data of the caller's, which a loaded estimator has as `notes_`.
        """
        if not self.is_fitted:
            raise NotFittedError(f"`save` needs a fitted {type(self).__name__}; call `fit` first")
        target = Path(path).absolute()
        _check_target(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            self._write(new, notes or {})
            _put_in_place(new, target)
        finally:
            shutil.rmtree(new, ignore_errors=True)

    @classmethod
    def load(cls: type[Estimator], path: str | Path) -> Estimator:
        """The estimator saved in a folder, fitted; its predictions are the same to the last bit."""
        folder = _whole(Path(path).absolute())
        document = _read_document(folder)
        found = Storable._known.get(document["class"])
        require(
            found is not None and issubclass(found, cls),
            f"`path` must hold a saved {cls.__name__}, got {document['class']} in {folder}",
        )
        tensors = _read_tensors(folder, document["digest"])
        params = {name: _plain.decode(value) for name, value in document["params"].items()}
        estimator = found(**params)  # type: ignore[misc]
        estimator._restore(tensors, document["facts"])
        estimator.notes_ = document["notes"]
        estimator.is_fitted = True
        return estimator

    def _write(self, folder: Path, notes: dict[str, Any]) -> None:
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in self._tensors().items()}
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        document = {
            "format": FORMAT,
            "class": type(self).__name__,
            "params": {name: _plain.encode(value) for name, value in params.items()},
            "facts": self._facts(),
            "notes": notes,
            "digest": digest(tensors, ""),
            "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        }
        write_atomically(folder / TENSORS, safetensors.torch.save(tensors))
        write_atomically(folder / DOCUMENT, json.dumps(document, indent=1).encode())

    def _tensors(self) -> Tensors:
        raise NotImplementedError

    def _facts(self) -> dict[str, Any]:
        raise NotImplementedError

    def _restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        raise NotImplementedError


def _previous(target: Path) -> Path:
    """Where the old folder waits while the new one takes its place."""
    return target.with_name(f".{target.name}.previous")


def _check_target(target: Path) -> None:
    """Only a saved model may be overwritten: its folder is removed in the end."""
    if not target.exists():
        return
    require(target.is_dir(), f"`path` must be a folder, got the file {target}")
    others = sorted({entry.name for entry in target.iterdir()} - {TENSORS, DOCUMENT})
    require(
        not others,
        f"`path` must be new or hold a saved model only, got {target} with {', '.join(others[:5])}",
    )


def _put_in_place(new: Path, target: Path) -> None:
    """Exchange folders. There is no moment without one: what was moved aside is found by `load`."""
    previous = _previous(target)
    new.chmod(0o755)
    if target.exists():
        shutil.rmtree(previous, ignore_errors=True)
        target.rename(previous)
    try:
        new.rename(target)
    except OSError:
        if previous.exists():
            previous.rename(target)
        raise
    shutil.rmtree(previous, ignore_errors=True)


def _whole(folder: Path) -> Path:
    """The folder, or what was there before a process was killed while it exchanged the two."""
    return _previous(folder) if not folder.exists() and _previous(folder).exists() else folder


def _read_document(folder: Path) -> dict[str, Any]:
    path = folder / DOCUMENT
    require(path.is_file(), f"`path` must be the folder of a saved model, got {folder} without {DOCUMENT}")
    try:
        document = json.loads(path.read_text())
    except ValueError as error:
        raise ArgumentError(_unreadable(path, error)) from error
    ours = isinstance(document, dict) and set(document) == KEYS
    require(ours, f"`path` must be the folder of a saved model, but {path} is something else")
    require(document["format"] == FORMAT, f"{path} must have format {FORMAT}, got {document['format']}")
    return document


def _unreadable(path: Path, error: Exception) -> str:
    return f"`path` must hold a complete model, but {path} cannot be read: {error}"


def _read_tensors(folder: Path, expected: str) -> Tensors:
    path = folder / TENSORS
    require(path.is_file(), f"`path` must hold a complete model, got {folder} without {TENSORS}")
    try:
        tensors = safetensors.torch.load(path.read_bytes())
    except safetensors.SafetensorError as error:
        raise ArgumentError(_unreadable(path, error)) from error
    require(
        digest(tensors, "") == expected,
        f"`path` must hold a complete model, but {path} does not belong to its {DOCUMENT}",
    )
    return tensors
