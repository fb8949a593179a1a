"""`seq2tens fit`."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seq2tens.cli import _data, _files, _models
from seq2tens.cli._shell import UserError, refusing
from seq2tens.cli._stopping import trainable

if TYPE_CHECKING:  # importing them takes seconds
    from seq2tens.data import Columns, Labelled

Out = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Where to save the model.", show_default=False)
]
Model = Annotated[
    str, typer.Option("--model", metavar="NAME", help="fcn-ls2t, ls2t, fcn, resnet or random-ls2t.")
]
Recipe = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        metavar="fast|paper",
        help="How to train: about 1500 steps, or the paper's long way. [default: fast]",
    ),
]
Epochs = Annotated[
    int | None, typer.Option("--epochs", metavar="N", help="At most so many epochs. [default: the recipe's]")
]
BatchSize = Annotated[
    int | None, typer.Option("--batch-size", metavar="N", help="Sequences per step. [default: the recipe's]")
]
LearningRate = Annotated[
    float | None,
    typer.Option("--learning-rate", metavar="X", help="The highest rate. [default: the recipe's]"),
]
ClassWeight = Annotated[
    str | None,
    typer.Option(
        "--class-weight",
        metavar="balanced|none",
        help="Whether every class counts the same. [default: balanced]",
    ),
]
Scaling = Annotated[
    str | None,
    typer.Option(
        "--scaling",
        metavar="auto|channel|sequence|none",
        help="Standardise with the statistics of the training data, or of each sequence by itself; auto: by "
        "sequence for at most 100 of them. [default: auto]",
    ),
]
Validation = Annotated[
    float | None,
    typer.Option(
        "--validation-fraction",
        metavar="X",
        help="Part of DATA that is not trained on; the weights that are best on it are kept. [default: none]",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="A size of the network, as in `--set width=32`; repeatable."
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Same seed, same model.")]
Device = Annotated[
    str | None, typer.Option("--device", metavar="auto|cpu|gpu", help="Where to train. [default: auto]")
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="Keep the state there; the same command goes on after an interruption.",
    ),
]
Curves = Annotated[
    Path | None, typer.Option("--curves", metavar="FILE", help="Draw the learning curves (.png, .svg, .pdf).")
]
Progress = Annotated[
    str,
    typer.Option("--progress", metavar="auto|bar|lines|silent", help="What to show meanwhile, on stderr."),
]
Force = Annotated[
    bool, typer.Option("--force", "--overwrite", help="Replace the model in --out, and the picture.")
]


def fit(
    data: _data.DataArgument,
    out: Out,
    model: Model = "fcn-ls2t",
    recipe: Recipe = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    learning_rate: LearningRate = None,
    class_weight: ClassWeight = None,
    scaling: Scaling = None,
    validation_fraction: Validation = None,
    settings: Settings = None,
    seed: Seed = 0,
    device: Device = None,
    checkpoint: Checkpoint = None,
    curves: Curves = None,
    progress: Progress = "auto",
    force: Force = False,
    split: _data.SplitOption = None,
    id_column: _data.IdOption = None,
    time_column: _data.TimeOption = None,
    label_column: _data.LabelOption = None,
    channel_columns: _data.ChannelsOption = None,
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
    _models.check_new(out, force=force)
    _files.check_folder(checkpoint, "--checkpoint")
    picture = _files.picture(curves, "--curves", force=force)
    options = {
        "recipe": recipe,
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "class_weight": class_weight,
        "scaling": scaling,
        "validation_fraction": validation_fraction,
        "random_state": seed,
        "device": device,
        "checkpoint": checkpoint,
        "progress": progress,
    }
    classifier = _models.make(model, options, settings or ())
    reading = _data.Reading(split, id_column, time_column, label_column, channel_columns)
    train = _data.load(data, reading, "train", reading.columns())
    _train(classifier, train, data, _models.option_names(classifier, options), checkpoint)
    _save(classifier, out, reading.columns(), train.channels)
    _draw(getattr(classifier, "history_", []), picture)


def _train(
    classifier: Any, train: Labelled, data: str, names: dict[str, str], checkpoint: Path | None
) -> None:
    from seq2tens.training import NonFiniteLoss

    classes = _data.classes_of(train, data)
    if len(classes) < 2:
        raise UserError(f"{data} must have at least two classes, got only {classes[0]!r}")
    typer.echo(f"training on {_data.described(train)}, {len(classes)} classes")
    begin = time.perf_counter()
    going_on = partial(_prospect, checkpoint)
    with trainable(classifier, going_on), refusing(NonFiniteLoss, OSError, **names):
        classifier.fit(train.sequences, train.labels)
    typer.echo(f"trained in {time.perf_counter() - begin:.1f} s")


def _save(classifier: Any, out: Path, columns: Columns, channels: tuple[str, ...] | None) -> None:
    """Save with the names of the columns, so that they need not be given again and cannot be mixed up."""
    notes = {} if channels is None else {"columns": asdict(replace(columns, channels=channels))}
    with refusing(OSError, path="--out"):
        classifier.save(out, notes)
    typer.echo(f"saved {out}")


def _draw(history: list[dict[str, float]], picture: _files.Output | None) -> None:
    if picture is None:
        return
    from seq2tens import plots

    with picture.replacing() as file:
        plots.save(plots.learning_curves(history), file)
    picture.tell()


def _prospect(checkpoint: Path | None) -> str:
    from seq2tens.training import Checkpoints

    if checkpoint is None:
        return "nothing is saved (with `--checkpoint DIR` a fit can be resumed)"
    if not (generations := Checkpoints(checkpoint).generations()):
        return f"nothing is saved in {checkpoint} yet, the same command starts over"
    epoch = int(generations[0].stem.removeprefix("epoch-"))
    return f"the same command goes on after epoch {epoch}, which is saved in {checkpoint}"
