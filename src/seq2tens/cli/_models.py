"""Classifiers by name, and the folders in which they are saved."""

from __future__ import annotations

import ast
import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seq2tens.cli import _data, _files
from seq2tens.cli._shell import UserError, refusing

if TYPE_CHECKING:  # importing them takes seconds
    import numpy as np

    from seq2tens.data import Labelled, Sequences

FolderArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="The folder of a saved model.", show_default=False)
]


def arguments(options: Any, leaving: Sequence[str]) -> dict[str, Any]:
    """Those of the options of a verb that are arguments of its estimator."""
    return {
        field.name: getattr(options, field.name) for field in fields(options) if field.name not in leaving
    }


def make(
    name: str, options: dict[str, Any], settings: Sequence[str], models: Mapping[str, type[Any]] | None = None
) -> Any:
    """A new estimator, a classifier if `models` does not say more; options that are None are left to its own
    defaults."""
    from seq2tens.estimators import MODELS

    models = MODELS if models is None else models
    if name not in models:
        raise UserError(f"`--model` must be one of {', '.join(models)}, got {name!r}")
    known = inspect.signature(models[name]).parameters
    chosen = {key: value for key, value in options.items() if value is not None}
    chosen |= {key: None for key in ("class_weight", "scaling") if chosen.get(key) == "none"}
    for key in ("progress", "random_state"):
        if key not in known:
            chosen.pop(key, None)  # they have defaults in the shell, and not every model has a use for them
    for key in chosen:
        if key not in known:
            raise UserError(f"`--{key.replace('_', '-')}` is no setting of the model {name}")
    if "device" in chosen:
        _check_device(str(chosen["device"]))
    sizes = {key: parameter.default for key, parameter in known.items() if key not in options}
    return models[name](**chosen, **_parsed(settings, sizes))


def option_names(classifier: Any, options: dict[str, Any]) -> dict[str, str]:
    """What the arguments of a classifier are called in the shell."""
    names = {
        name: f"--{name.replace('_', '-')}" if name in options else f"--set {name}"
        for name in classifier.get_params()
    }
    return names | {"random_state": "--seed", "fraction": "--validation-fraction"}


def _check_device(device: str) -> None:
    """Refuse a device that is not there; Lightning has several kinds of errors for it."""
    from seq2tens.estimators.devices import make_fabric

    try:
        make_fabric(device)
    except Exception as error:
        raise UserError(f"`--device` {device!r} cannot be used here: {error}") from error


def load(folder: Path) -> Any:
    """A saved classifier."""
    from seq2tens.estimators import SequenceClassifier

    with refusing(OSError, path="DIR"):
        return SequenceClassifier.load(folder)


def load_with_data(
    folder: Path, data: str, reading: _data.Reading, *, label_optional: bool
) -> tuple[Any, Labelled]:
    """A saved classifier, and DATA (its test half) read and trimmed to what the classifier knows."""
    from seq2tens.data import Columns

    classifier = load(folder)
    known = Columns.from_state(classifier.notes_.get("columns", {}))
    labelled = _data.load(data, reading, "test", reading.columns(known, label_optional=label_optional))
    sequences = _data.without_times(labelled.sequences, wanted=classifier.preparation_.clock is not None)
    return classifier, replace(labelled, sequences=sequences)


def probabilities(classifier: Any, sequences: Sequences) -> np.ndarray:
    """What the classifier says of each sequence."""
    with refusing(X="DATA"):
        return classifier.predict_proba(sequences)


def check_new(folder: Path, *, force: bool) -> None:
    """Refuse a folder that is there already or cannot be made, before hours of training."""
    _files.check_folder(folder, "--out")
    with refusing(OSError):
        folder.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(folder.parent, os.W_OK):
        raise UserError(f"`--out` must lie in a folder that can be written to, got {folder}")
    if not folder.exists():
        return
    saved = (folder / "model.json").exists()
    if saved and not force:
        raise UserError(f"`--out` must be new, but {folder} holds a model; `--force` replaces it")
    if not saved and any(folder.iterdir()):
        raise UserError(f"`--out` must be new, empty or a saved model, but {folder} holds other files")


def _parsed(settings: Sequence[str], defaults: dict[str, Any]) -> dict[str, Any]:
    """`NAME=VALUE` pairs as values of the type of the default."""
    values = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or name not in defaults:
            raise UserError(
                f"`--set` must be NAME=VALUE with a name among {', '.join(defaults)}, got {setting!r}"
            )
        values[name] = _value(name, text, defaults[name])
    return values


def _value(name: str, text: str, default: Any) -> Any:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = text
    if isinstance(default, float) and type(value) is int:
        value = float(value)
    if type(value) is not type(default):
        raise UserError(f"`--set {name}` must be of the kind of its default {default!r}, got {text!r}")
    return value
