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

# Options with a default in the shell; models that have no use for them ignore them.
SHARED_OPTIONS = ("progress", "random_state")
FolderArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="The folder of a saved model.", show_default=False)
]


def arguments(options: Any, excluded: Sequence[str]) -> dict[str, Any]:
    """The options of a command that are arguments of its estimator."""
    return {
        field.name: getattr(options, field.name) for field in fields(options) if field.name not in excluded
    }


def check(name: str, task: catalogue.Task, options: dict[str, Any], settings: Sequence[str]) -> str:
    """Find the shell's name of a model and refuse options and settings that the model does not have.

    Nothing heavy is imported for this.
    """
    name = catalogue.find(name, task)
    model = catalogue.MODELS[task][name]
    for key, value in options.items():
        if value is not None and key not in model.options and key not in SHARED_OPTIONS:
            others = ", ".join(catalogue.models_with(key, task)) or "another task"
            raise UserError(
                f"`--{key.replace('_', '-')}` is not an option of the model {name}, but of {others}"
            )
    _parsed(settings, name, model.settings, options)
    return name


def make(name: str, task: catalogue.Task, options: dict[str, Any], settings: Sequence[str]) -> Any:
    """Create an estimator; where an option is None, the estimator's default applies."""
    from seq2tens import estimators

    model = catalogue.MODELS[task][name]
    chosen = {key: value for key, value in options.items() if value is not None and key in model.options}
    chosen |= {key: None for key in ("class_weight", "scaling") if chosen.get(key) == "none"}
    if "device" in chosen:
        _check_device(str(chosen["device"]))
    return getattr(estimators, model.estimator)(**chosen, **_parsed(settings, name, model.settings, options))


def option_names(classifier: Any, options: dict[str, Any]) -> dict[str, str]:
    """The shell's names of all arguments of an estimator."""
    names = {
        name: option_name(name) if name in options else f"--set {name}" for name in classifier.get_params()
    }
    return names | {"fraction": "--validation-fraction"}


def option_name(argument: str) -> str:
    """The shell's name of an argument of an estimator."""
    return "--seed" if argument == "random_state" else f"--{argument.replace('_', '-')}"


def _check_device(device: str) -> None:
    """Refuse a device that is not available; Lightning raises various errors for it."""
    from seq2tens.estimators import make_fabric

    try:
        make_fabric(device)
    except Exception as error:
        raise UserError(f"`--device` {device!r} cannot be used here: {error}") from error


def load(folder: Path) -> Any:
    """Load a saved classifier or regressor."""
    # If the writer was killed while it replaced the model, the previous one is still under this name.
    if not folder.exists() and not folder.with_name(f".{folder.name}.previous").exists():
        suggestion = did_you_mean(folder.name, os.listdir(folder.parent) if folder.parent.is_dir() else ())
        raise UserError(
            f"`DIR` must be the folder of a saved model, got {folder}, which does not exist{suggestion}"
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
    """Whether a loaded model predicts classes, not numbers."""
    return hasattr(model, "classes_")


def load_with_data(
    folder: Path, data: str, reading: _data.Reading, *, label_optional: bool
) -> tuple[Any, Labelled]:
    """Load a saved model and DATA, by default the test half, with the columns of the model."""
    classifier = load(folder)
    from seq2tens.data import Columns

    known = Columns.from_state(classifier.notes_.get("columns", {}))
    labelled = _data.load(data, reading, "test", reading.columns(known, label_optional=label_optional))
    sequences = _data.without_times(labelled.sequences, has_clock=classifier.preparation_.clock is not None)
    return classifier, replace(labelled, sequences=sequences)


def probabilities(classifier: Any, sequences: Sequences) -> np.ndarray:
    """Predict the class probabilities of each sequence."""
    with refusing(X="DATA"):
        return classifier.predict_proba(sequences)


def values(regressor: Any, sequences: Sequences) -> np.ndarray:
    """Predict the number of each sequence."""
    with refusing(X="DATA"):
        return regressor.predict(sequences)


def check_new(folder: Path, *, force: bool) -> None:
    """Refuse a folder that exists already or cannot be created, before hours of training."""
    _files.check_folder(folder, "--out")
    with refusing(OSError):
        folder.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(folder.parent, os.W_OK):
        raise UserError(f"`--out` must be in a writable folder, got {folder}")
    if not folder.exists():
        return
    saved = (folder / "model.json").exists()
    if saved and not force:
        raise UserError(f"`--out` must be new, but {folder} holds a model; `--force` replaces it")
    if not saved and any(folder.iterdir()):
        raise UserError(f"`--out` must be new, empty or a saved model, but {folder} holds other files")


def _parsed(
    settings: Sequence[str], model: str, defaults: catalogue.Defaults, options: dict[str, Any]
) -> dict[str, Any]:
    """Parse `NAME=VALUE` pairs; each value must have the type of the default."""
    values = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or name not in defaults:
            known = ", ".join(defaults) or "none at all"
            raise UserError(
                f"`--set` must be NAME=VALUE with a setting of {model} ({known}), got {setting!r}"
                f"{_suggestion(name, defaults, options)}"
            )
        values[name] = _value(name, text, defaults[name])
    return values


def _suggestion(name: str, defaults: catalogue.Defaults, options: dict[str, Any]) -> str:
    option = name.replace("-", "_")
    if option in options:
        return f"; `{option_name(option)}` is an option of its own"
    return "" if name in defaults else did_you_mean(name, defaults)  # without `=` the name is right


def _value(name: str, text: str, default: Any) -> Any:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = text
    if isinstance(default, float) and type(value) is int:
        value = float(value)
    if default is not None and type(value) is not type(default):
        kind = "numbers separated by commas" if default == () else f"of the type of its default {default!r}"
        raise UserError(f"`--set {name}` must be {kind}, got {text!r}")
    return value
