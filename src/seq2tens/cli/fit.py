"""`seq2tens fit`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seq2tens.cli import _data, _files, _models
from seq2tens.cli._options import choice, count, option
from seq2tens.cli._shared import catalogue, target_kinds
from seq2tens.cli._shell import UserError, refusing
from seq2tens.cli._stopping import training

if TYPE_CHECKING:  # importing them takes seconds
    from seq2tens.data import Columns, Encoding, Labelled

Out = Annotated[Path, option("DIR", "Where to save the model.", show_default=False)]
Model = Annotated[
    str | None,
    option(
        "NAME",
        "fcn-ls2t, ls2t, fcn, resnet or random-ls2t; for regression random-ls2t. [default: fcn-ls2t, for "
        "regression random-ls2t]",
    ),
]
TaskOption = Annotated[
    str | None,
    choice(
        "classification|regression",
        "Predict classes or numbers. [default: inferred from the labels]",
        "--task",
    ),
]
Recipe = Annotated[
    str | None,
    choice("fast|paper", "How to train: in about 1500 steps, or as in the paper. [default: fast]"),
]
Epochs = Annotated[int | None, count("N", "Maximum number of epochs. [default: the recipe's]")]
BatchSize = Annotated[int | None, count("N", "Sequences per step. [default: the recipe's]")]
LearningRate = Annotated[float | None, option("X", "Maximum learning rate. [default: the recipe's]")]
ClassWeight = Annotated[
    str | None, choice("balanced|none", "Whether all classes have equal weight. [default: balanced]")
]
Scaling = Annotated[
    str | None,
    choice(
        "auto|channel|sequence|none",
        "Standardise channels with the statistics of the training set, or of each sequence; auto: sequence "
        "for at most 100 of them, else channel. [default: auto]",
    ),
]
Validation = Annotated[
    float | None,
    option("X", "Fraction of DATA that is held out to select the best weights. [default: none]"),
]
Settings = Annotated[
    list[str] | None,
    option("NAME=VALUE", "Another argument of the model, see below; repeatable.", "--set"),
]
Seed = Annotated[int, option("N", "Random seed.", "--seed")]
Device = Annotated[str | None, option("auto|cpu|gpu", "Where to train. [default: auto]")]
Checkpoint = Annotated[
    Path | None, option("DIR", "Keep the training state there; the same command resumes an interrupted fit.")
]
Curves = Annotated[Path | None, option("FILE", "Plot the learning curves (.png, .svg, .pdf).")]
Progress = Annotated[str, choice("auto|bar|lines|silent", "Progress display, on stderr.")]
Force = Annotated[
    bool, typer.Option("--force", "--overwrite", help="Replace the model in --out, and the plot.")
]


SHELL = ("task", "settings", "curves", "force")
DEFAULTS: dict[catalogue.Task, str] = {"classification": "fcn-ls2t", "regression": "random-ls2t"}


@dataclass(frozen=True)
class FitOptions:
    """Options of the training; all except those in `SHELL` are arguments of the estimator."""

    task: TaskOption = None
    recipe: Recipe = None
    epochs: Epochs = None
    batch_size: BatchSize = None
    learning_rate: LearningRate = None
    class_weight: ClassWeight = None
    scaling: Scaling = None
    validation_fraction: Validation = None
    settings: Settings = None
    random_state: Seed = 0
    device: Device = None
    checkpoint: Checkpoint = None
    curves: Curves = None
    progress: Progress = "auto"
    force: Force = False


def fit(
    data: _data.DataArgument,
    out: Out,
    *,
    model: Model = None,
    options: FitOptions,
    reading: _data.Reading,
) -> None:
    """Train a classifier or a regressor on DATA and save it.

    Sequences may have unequal lengths and missing values. If DATA has a training and a test set, only the
    training set is used. Ctrl-C or SIGTERM stops the training; with --checkpoint, the same command resumes it
    after the last complete epoch, with the same result.

    Examples:

    \b
      seq2tens fit JapaneseVowels --out vowels
      seq2tens fit train.csv --label-column speaker --validation-fraction 0.2 --out model
      seq2tens fit train.ts --model ls2t --set width=32 --set order=3 --out model
      seq2tens fit train.npz --recipe paper --checkpoint running --out model
      seq2tens fit train.csv --label-column age --task regression --out model
    """
    _models.check_new(out, force=options.force)
    _files.check_folder(options.checkpoint, "--checkpoint")
    picture = _files.picture(options.curves, "--curves", force=options.force)
    arguments, settings = _models.arguments(options, excluded=SHELL), options.settings or ()
    _check_names(model, options.task, arguments, settings)
    _data.check(data)
    train = _data.load(data, reading, "train", reading.columns())
    task: Any = options.task or target_kinds.guess_task(train, data)
    model = _models.check(model or DEFAULTS[task], task, arguments, settings)
    if picture is not None and (trained := catalogue.models_with("epochs", task)).count(model) == 0:
        alternatives = f": {', '.join(trained)}" if trained else ", for classification"
        raise UserError(f"`--curves` is for models that are trained in epochs{alternatives}, not for {model}")
    estimator = _models.make(model, task, arguments, settings)
    labels = _targets(train, data, task)
    names = _models.option_names(estimator, arguments)
    with training(estimator, partial(_saved_message, options.checkpoint), **names):
        estimator.fit(replace(train, labels=labels))
    _save(estimator, out, reading.columns(), train.encoding)
    if picture is not None:
        from seq2tens import plots

        picture.draw(plots.learning_curves(getattr(estimator, "history_", [])))


def _check_names(
    model: str | None, task: str | None, arguments: dict[str, Any], settings: Sequence[str]
) -> None:
    """Refuse wrong names before anything heavy is imported; without `--task`, those that no task accepts."""
    tasks: Any = list(DEFAULTS) if task is None else [task]
    errors = []
    for possible in tasks:
        try:
            _models.check(model or DEFAULTS[possible], possible, arguments, settings)
            return
        except UserError as error:
            errors.append(error)
    raise errors[0]


def _targets(train: Labelled, data: str, task: catalogue.Task) -> Any:
    """The targets of the training data, after printing its size."""
    if task == "regression":
        values = target_kinds.values_of(train, data)
        typer.echo(f"training on {_data.described(train)}, targets {values.min():g} to {values.max():g}")
        return values
    classes = target_kinds.classes_of(train, data)
    if len(classes) < 2:
        raise UserError(
            f"{data} must have at least two classes, got only {classes[0]!r}; `--label-column` names another "
            "column of a table"
        )
    typer.echo(f"training on {_data.described(train)}, {len(classes)} classes")
    return train.labels


def _save(estimator: Any, out: Path, columns: Columns, encoding: Encoding | None) -> None:
    """Save the estimator with the names of its columns, so that later commands find them by name."""
    notes = {}
    if encoding is not None:
        channels = tuple(column.name for column in encoding.columns)
        notes["columns"] = replace(columns, channels=channels, encoding=encoding).state()
    with refusing(OSError, path="--out"):
        estimator.save(out, notes)
    typer.echo(f"saved {out}")


def _saved_message(checkpoint: Path | None) -> str:
    """What was saved, as the second half of the message when training is interrupted."""
    from seq2tens.training import Checkpoints

    if checkpoint is None:
        return "nothing is saved (with `--checkpoint DIR` a fit can be resumed)"
    if not (generations := Checkpoints(checkpoint).generations()):
        return f"nothing is saved in {checkpoint} yet; the same command starts over"
    epoch = int(generations[0].stem.removeprefix("epoch-"))
    return f"the same command resumes after epoch {epoch}, which is saved in {checkpoint}"
