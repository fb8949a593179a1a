"""`seq2tens fit`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seq2tens.cli import _data, _files, _models
from seq2tens.cli._options import option
from seq2tens.cli._shell import UserError, refusing
from seq2tens.cli._stopping import training

if TYPE_CHECKING:  # importing them takes seconds
    from seq2tens.data import Columns, Encoding

Out = Annotated[Path, option("DIR", "Where to save the model.", show_default=False)]
Model = Annotated[str, option("NAME", "fcn-ls2t, ls2t, fcn, resnet or random-ls2t.")]
Recipe = Annotated[
    str | None,
    option("fast|paper", "How to train: about 1500 steps, or the paper's long way. [default: fast]"),
]
Epochs = Annotated[int | None, option("N", "At most so many epochs. [default: the recipe's]")]
BatchSize = Annotated[int | None, option("N", "Sequences per step. [default: the recipe's]")]
LearningRate = Annotated[float | None, option("X", "The highest rate. [default: the recipe's]")]
ClassWeight = Annotated[
    str | None, option("balanced|none", "Whether every class counts the same. [default: balanced]")
]
Scaling = Annotated[
    str | None,
    option(
        "auto|channel|sequence|none",
        "Standardise with the statistics of the training data, or of each sequence by itself; auto: by "
        "sequence for at most 100 of them. [default: auto]",
    ),
]
Validation = Annotated[
    float | None,
    option(
        "X", "Part of DATA that is not trained on; the weights that are best on it are kept. [default: none]"
    ),
]
Settings = Annotated[
    list[str] | None,
    option("NAME=VALUE", "A size of the network, as in `--set width=32`; repeatable.", "--set"),
]
Seed = Annotated[int, option("N", "Same seed, same model.", "--seed")]
Device = Annotated[str | None, option("auto|cpu|gpu", "Where to train. [default: auto]")]
Checkpoint = Annotated[
    Path | None, option("DIR", "Keep the state there; the same command goes on after an interruption.")
]
Curves = Annotated[Path | None, option("FILE", "Draw the learning curves (.png, .svg, .pdf).")]
Progress = Annotated[str, option("auto|bar|lines|silent", "What to show meanwhile, on stderr.")]
Force = Annotated[
    bool, typer.Option("--force", "--overwrite", help="Replace the model in --out, and the picture.")
]


@dataclass(frozen=True)
class FitOptions:
    """How to train; all but the last ones are arguments of the estimator."""

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
    model: Model = "fcn-ls2t",
    options: FitOptions,
    reading: _data.Reading,
) -> None:
    """Train a classifier on DATA and save it.

    Sequences may have unequal lengths and missing values. Data with two halves is trained on its training
    half. Ctrl-C or SIGTERM stops; with --checkpoint the same command goes on later, after the last whole
    epoch and to the same result.

    Examples:

    \b
      seq2tens fit JapaneseVowels --out vowels
      seq2tens fit train.csv --label-column speaker --validation-fraction 0.2 --out model
      seq2tens fit train.ts --model ls2t --set width=32 --set order=3 --out model
      seq2tens fit train.npz --recipe paper --checkpoint running --out model
    """
    _models.check_new(out, force=options.force)
    _files.check_folder(options.checkpoint, "--checkpoint")
    picture = _files.picture(options.curves, "--curves", force=options.force)
    arguments = _models.arguments(options, leaving=("settings", "curves", "force"))
    classifier = _models.make(model, arguments, options.settings or ())
    train = _data.load(data, reading, "train", reading.columns())
    classes = _data.classes_of(train, data)
    if len(classes) < 2:
        raise UserError(f"{data} must have at least two classes, got only {classes[0]!r}")
    typer.echo(f"training on {_data.described(train)}, {len(classes)} classes")
    with training(
        classifier, partial(_prospect, options.checkpoint), **_models.option_names(classifier, arguments)
    ):
        classifier.fit(train)
    _save(classifier, out, reading.columns(), train.encoding)
    if picture is not None:
        from seq2tens import plots

        picture.draw(plots.learning_curves(getattr(classifier, "history_", [])))


def _save(classifier: Any, out: Path, columns: Columns, encoding: Encoding | None) -> None:
    """Save with the names of the columns, so that they need not be given again and cannot be mixed up."""
    notes = {}
    if encoding is not None:
        channels = tuple(column.name for column in encoding.columns)
        notes["columns"] = replace(columns, channels=channels, encoding=encoding).state()
    with refusing(OSError, path="--out"):
        classifier.save(out, notes)
    typer.echo(f"saved {out}")


def _prospect(checkpoint: Path | None) -> str:
    """What is said of the work when training is interrupted."""
    from seq2tens.training import Checkpoints

    if checkpoint is None:
        return "nothing is saved (with `--checkpoint DIR` a fit can be resumed)"
    if not (generations := Checkpoints(checkpoint).generations()):
        return f"nothing is saved in {checkpoint} yet, the same command starts over"
    epoch = int(generations[0].stem.removeprefix("epoch-"))
    return f"the same command goes on after epoch {epoch}, which is saved in {checkpoint}"
