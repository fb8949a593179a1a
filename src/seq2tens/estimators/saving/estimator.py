"""Base class of estimators that can be saved and loaded."""

from __future__ import annotations

import importlib.metadata
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import torch
from sklearn.exceptions import NotFittedError
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from seq2tens._checks import ArgumentError, require
from seq2tens._storage import Tensors
from seq2tens.estimators.saving import folder as model_folder
from seq2tens.estimators.saving import plain

PACKAGES = ("seq2tens", "torch", "numpy", "aeon", "scikit-learn")

Estimator = TypeVar("Estimator", bound="Storable")
Network = TypeVar("Network", bound=nn.Module)


class Storable:
    """Base class of estimators that can be saved without pickle.

    A subclass returns its fitted state as tensors (`_tensors`) and as JSON data (`_facts`), and takes both
    back in `_restore`.
    """

    _classes: ClassVar[dict[str, type[Any]]] = {}
    is_fitted: bool
    notes_: dict[str, Any]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        Storable._classes[cls.__name__] = cls

    def save(self, path: str | Path, notes: dict[str, Any] | None = None) -> None:
        """Write the fitted estimator to a folder; an earlier one is replaced once the new one is complete.

        `notes` is JSON data that a loaded estimator has as `notes_`. The folder has a model card,
        `README.md`, which may be edited; the next `save` overwrites it.
        """
        if not self.is_fitted:
            raise NotFittedError(f"`save` needs a fitted {type(self).__name__}; call `fit` first")
        with model_folder.replacing(Path(os.path.realpath(path))) as folder:
            self._write(folder, notes or {})

    def save_pretrained(self, save_directory: str | Path) -> None:
        """Call `save`, under the name used by libraries of the Hugging Face Hub."""
        self.save(save_directory)

    @classmethod
    def from_pretrained(
        cls: type[Estimator], pretrained_model_name_or_path: str | Path, **options: Any
    ) -> Estimator:
        """Load an estimator from a folder or, if there is no such folder, from the Hugging Face Hub.

        The latter needs `pip install 'seq2tens[hub]'`.

        Args:
            pretrained_model_name_or_path: path of the folder, or name of the repository.
            options: arguments of `huggingface_hub.snapshot_download`, such as `revision` and `token`.
        """
        if Path(pretrained_model_name_or_path).is_dir():
            return cls.load(pretrained_model_name_or_path)
        try:
            from huggingface_hub import snapshot_download
        except ImportError as error:
            raise ImportError(
                f"`pretrained_model_name_or_path` {str(pretrained_model_name_or_path)!r} is not a folder; a "
                "repository needs huggingface_hub: pip install 'seq2tens[hub]'"
            ) from error
        files = [model_folder.DOCUMENT, model_folder.TENSORS]
        options = {"allow_patterns": files, **options}
        return cls.load(snapshot_download(str(pretrained_model_name_or_path), **options))

    @classmethod
    def load(cls: type[Estimator], path: str | Path) -> Estimator:
        """Load a fitted estimator from a folder; its predictions are identical to the last bit.

        Files that were changed after saving raise an error.
        """
        folder, document, tensors = model_folder.read(Path(os.path.realpath(path)))
        kind = Storable._classes.get(str(document["class"]))
        if kind is None or not issubclass(kind, cls):
            raise ArgumentError(
                f"`path` must hold a saved {cls.__name__}, got {document['class']} in {folder}"
            )
        with _refusing(folder):
            params = {name: plain.decode(value) for name, value in document["params"].items()}
            estimator = kind(**params)
            estimator._restore(tensors, document["facts"])
        estimator.notes_ = document["notes"]
        estimator.is_fitted = True
        return estimator

    def _write(self, folder: Path, notes: dict[str, Any]) -> None:
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in self._tensors().items()}
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        document = {
            "class": type(self).__name__,
            "params": {name: plain.encode(value) for name, value in params.items()},
            "facts": self._facts(),
            "notes": notes,
            "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        }
        model_folder.write(folder, document, tensors)

    def _tensors(self) -> Tensors:
        raise NotImplementedError

    def _facts(self) -> dict[str, Any]:
        raise NotImplementedError

    def _restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        raise NotImplementedError


def restored(make: Callable[[], Network], weights: Tensors, device: torch.device) -> Network:
    """Return the network with these weights, in evaluation mode.

    If its sizes do not match, an error is raised before it takes time and memory.
    """
    with torch.device("meta"), _parameters_at_most(len(weights)):
        needed = {name: tuple(tensor.shape) for name, tensor in make().state_dict().items()}
    saved = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    wrong = sorted(name for name in needed.keys() | saved if needed.get(name) != saved.get(name))
    require(
        not wrong,
        f"the arguments must match the tensors, got {_first(wrong, needed)} for {_first(wrong, saved)}",
    )
    network = make().eval()
    network.load_state_dict(weights)
    return network.to(device)


def _first(names: list[str], shapes: dict[str, tuple[int, ...]]) -> str:
    return f"{names[0]} {shapes.get(names[0], 'absent')}" if names else ""


@contextmanager
def _parameters_at_most(most: int) -> Iterator[None]:
    """Raise an error if modules built in this thread, within the context, have more parameters."""
    thread, registered = threading.get_ident(), 0

    def count(*_: Any) -> None:
        nonlocal registered
        registered += threading.get_ident() == thread
        require(registered <= most, f"the arguments must match the {most} tensors, got a larger network")

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()


@contextmanager
def _refusing(folder: Path) -> Iterator[None]:
    """Turn all errors into one kind: files of format 1 may be damaged, or a device may be missing."""
    try:
        yield
    except Exception as error:
        reason = str(error) if isinstance(error, ArgumentError) else f"{type(error).__name__}: {error}"
        raise ArgumentError(
            f"the model in {folder} cannot be used here: {model_folder.DOCUMENT}: {reason}"
        ) from error
