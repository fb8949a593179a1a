"""Estimators by name, and the folders in which they are saved."""

from __future__ import annotations

import ast
import os
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seq2tens._errors import did_you_mean
from seq2tens.cli import _data, _files
from seq2tens.cli._shared import catalogue
from seq2tens.cli._shell import UserError, refusing

if TYPE_CHECKING:  # importing them takes seconds
    import numpy as np

    from seq2tens.data import Labelled, Sequences

# They have defaults in the shell, and not every model has a use for them.
EVERYWHERE = ("progress", "random_state")
FolderArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="The folder of a saved model.", show_default=False)
]


def arguments(options: Any, leaving: Sequence[str]) -> dict[str, Any]:
    """Those of the options of a verb that are arguments of its estimator."""
    return {
        field.name: getattr(options, field.name) for field in fields(options) if field.name not in leaving
    }


def check(name: str, task: catalogue.Task, options: dict[str, Any], settings: Sequence[str]) -> str:
    """The shell's name of the model; options and settings that it does not have are refused, before anything
    heavy is imported."""
    name = catalogue.find(name, task)
    model = catalogue.MODELS[task][name]
    for key, value in options.items():
        if value is not None and key not in model.options and key not in EVERYWHERE:
            others = ", ".join(catalogue.having(key, task)) or "another task"
            raise UserError(
                f"`--{key.replace('_', '-')}` is no setting of the model {name}; it is for {others}"
            )
    _parsed(settings, name, model.settings, options)
    return name


def make(name: str, task: catalogue.Task, options: dict[str, Any], settings: Sequence[str]) -> Any:
    """A new estimator; options that are None are left to its own defaults."""
    from seq2tens import estimators

    model = catalogue.MODELS[task][name]
    chosen = {key: value for key, value in options.items() if value is not None and key in model.options}
    chosen |= {key: None for key in ("class_weight", "scaling") if chosen.get(key) == "none"}
    if "device" in chosen:
        _check_device(str(chosen["device"]))
    return getattr(estimators, model.estimator)(**chosen, **_parsed(settings, name, model.settings, options))


def option_names(classifier: Any, options: dict[str, Any]) -> dict[str, str]:
    """What the arguments of a classifier are called in the shell."""
    names = {
        name: option_name(name) if name in options else f"--set {name}" for name in classifier.get_params()
    }
    return names | {"fraction": "--validation-fraction"}


def option_name(argument: str) -> str:
    """What an argument of an estimator is called in the shell."""
    return "--seed" if argument == "random_state" else f"--{argument.replace('_', '-')}"


def _check_device(device: str) -> None:
    """Refuse a device that is not there; Lightning has several kinds of errors for it."""
    from seq2tens.estimators.devices import make_fabric

    try:
        make_fabric(device)
    except Exception as error:
        raise UserError(f"`--device` {device!r} cannot be used here: {error}") from error


def load(folder: Path) -> Any:
    """A saved classifier or regressor."""
    # one that was just being replaced when its writer was killed has its place there
    if not folder.exists() and not folder.with_name(f".{folder.name}.previous").exists():
        suggestion = did_you_mean(folder.name, os.listdir(folder.parent) if folder.parent.is_dir() else ())
        raise UserError(
            f"`DIR` must be the folder of a saved model, got {folder}, which is not there{suggestion}"
        )
    from seq2tens import estimators

    with refusing(OSError, path="DIR"):
        model = estimators.load(folder)
    if not isinstance(model, estimators.SequenceClassifier | estimators.SequenceRegressor):
        raise UserError(
            f"`DIR` must hold a saved classifier or regressor, got {type(model).__name__} in {folder}"
        )
    return model


def is_classifier(model: Any) -> bool:
    """Whether a loaded model tells classes, not numbers."""
    return hasattr(model, "classes_")


def load_with_data(
    folder: Path, data: str, reading: _data.Reading, *, label_optional: bool
) -> tuple[Any, Labelled]:
    """A saved model, and DATA (its test half) read and trimmed to what the model knows."""
    classifier = load(folder)
    from seq2tens.data import Columns

    known = Columns.from_state(classifier.notes_.get("columns", {}))
    labelled = _data.load(data, reading, "test", reading.columns(known, label_optional=label_optional))
    sequences = _data.without_times(labelled.sequences, wanted=classifier.preparation_.clock is not None)
    return classifier, replace(labelled, sequences=sequences)


def probabilities(classifier: Any, sequences: Sequences) -> np.ndarray:
    """What the classifier says of each sequence."""
    with refusing(X="DATA"):
        return classifier.predict_proba(sequences)


def values(regressor: Any, sequences: Sequences) -> np.ndarray:
    """The number that the regressor tells of each sequence."""
    with refusing(X="DATA"):
        return regressor.predict(sequences)


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


def _parsed(
    settings: Sequence[str], model: str, defaults: catalogue.Settings, options: dict[str, Any]
) -> dict[str, Any]:
    """`NAME=VALUE` pairs as values of the type of the default."""
    values = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or name not in defaults:
            known = ", ".join(defaults) or "none at all"
            raise UserError(
                f"`--set` must be NAME=VALUE with a name of {model} ({known}), got {setting!r}"
                f"{_meant(name, defaults, options)}"
            )
        values[name] = _value(name, text, defaults[name])
    return values


def _meant(name: str, defaults: catalogue.Settings, options: dict[str, Any]) -> str:
    option = name.replace("-", "_")
    if option in options:
        return f"; `{option_name(option)}` is an option of its own"
    return did_you_mean(name, defaults)


def _value(name: str, text: str, default: Any) -> Any:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = text
    if isinstance(default, float) and type(value) is int:
        value = float(value)
    if default is not None and type(value) is not type(default):
        kind = "numbers with commas" if default == () else f"the kind of its default {default!r}"
        raise UserError(f"`--set {name}` must be of {kind}, got {text!r}")
    return value
