"""`seq2tens choose`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seq2tens.cli import _data, _files, _models
from seq2tens.cli._options import count, option
from seq2tens.cli._shared import catalogue, target_kinds
from seq2tens.cli._shell import INTERRUPTED, UserError, note, refusing
from seq2tens.cli.fit import Seed, TaskOption

if TYPE_CHECKING:  # importing them takes seconds
    from seq2tens.estimators import Comparison, Trial

# The cheapest first, since time may run out.
ORDER = ("random-ls2t", "fcn", "ls2t", "fcn-ls2t", "resnet")

Minutes = Annotated[float, option("X", "Time limit in minutes.")]
Folds = Annotated[int, count("N", "Number of folds.")]
Models = Annotated[
    str | None,
    option(
        "A,B,…",
        f"Models to compare, in this order. [default: {', '.join(ORDER)}; for regression random-ls2t]",
    ),
]
Plot = Annotated[Path | None, option("FILE", "Plot the scores (.png, .svg, .pdf).")]
Json = Annotated[
    Path | None, option("FILE", "Write the numbers for other programs (.json; - is stdout).", "--json")
]


@dataclass(frozen=True)
class ChooseOptions:
    """Options of the comparison and its outputs."""

    task: TaskOption = None
    minutes: Minutes = 5.0
    folds: Folds = 3
    models: Models = None
    random_state: Seed = 0
    plot: Plot = None
    json_file: Json = None
    force: _files.Force = False


def choose(data: _data.DataArgument, options: ChooseOptions, reading: _data.Reading) -> None:
    """Recommend a model for DATA, by cross-validation within a time limit.

    Every model is cross-validated with its default hyperparameters. The recommended model is the fastest one
    that is as good as the best, up to the standard error of its mean score. A network that would exceed the
    time limit is left out, with a line that says so. If DATA has a training and a test set, only the training
    set is used.

    Examples:

    \b
      seq2tens choose JapaneseVowels --minutes 5 --plot scores.png
      seq2tens choose train.csv --label-column speaker --models random-ls2t,fcn-ls2t
    """
    picture = _files.picture(options.plot, "--plot", force=options.force)
    suffixes, path = (".json",), options.json_file
    numbers = None if path is None else _files.output(path, "--json", suffixes, force=options.force)
    _check(options)
    _data.check(data)
    train = _data.load(data, reading, "train", reading.columns())
    task: Any = options.task or target_kinds.guess_task(train, data)
    names = [catalogue.find(name, task, "--models") for name in _names(options, task)]
    regression = task == "regression"
    labels = (target_kinds.values_of if regression else target_kinds.classes_of)(train, data)
    comparison = _compared(
        {name: _models.make(name, task, {"random_state": options.random_state}, ()) for name in names},
        (train.sequences, labels if regression else train.labels),
        options,
    )
    _advise(comparison, data, options)
    if numbers is not None:
        trials = [asdict(trial) for trial in comparison.trials]
        report = {"measure": comparison.measure, "choice": comparison.choice.name, "trials": trials}
        numbers.write(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    if picture is not None:
        from seq2tens import plots

        scores = {trial.name: trial.scores for trial in comparison.tried}
        picture.draw(plots.model_scores(scores, comparison.measure))


def _check(options: ChooseOptions) -> None:
    """Refuse wrong options before anything heavy is imported."""
    if not options.minutes > 0:
        raise UserError(f"`--minutes` must be above 0, got {options.minutes}")
    if options.folds < 2:
        raise UserError(f"`--folds` must be at least 2, got {options.folds}")
    task: Any = options.task or "classification"
    for name in _names(options, task):
        catalogue.find(name, task, "--models")


def _names(options: ChooseOptions, task: catalogue.Task) -> list[str]:
    if options.models is not None:
        return [name.strip() for name in options.models.split(",")]
    return [name for name in ORDER if name in catalogue.MODELS[task]]


def _compared(models: dict[str, Any], data: tuple[Any, Any], options: ChooseOptions) -> Comparison:
    from seq2tens.estimators import compare

    typer.echo(f"{'model':<14}{'score':>8}{'±':>8}{'folds':>7}{'s / fit':>9}")
    try:
        with refusing(folds="--folds", y="DATA", X="DATA"):
            return compare(
                models,
                *data,
                folds=options.folds,
                seconds=60 * options.minutes,
                random_state=options.random_state,
                callback=_print_trial,
            )
    except KeyboardInterrupt:
        note("interrupted; the models above were measured")
        raise typer.Exit(INTERRUPTED) from None


def _print_trial(trial: Trial) -> None:
    """Print a row of the table."""
    if trial.skipped is not None:
        typer.echo(f"{trial.name:<14}  left out: {trial.skipped}")
        return
    numbers = f"{trial.mean:>8.4f}{trial.standard_error:>8.4f}{len(trial.scores):>7}{trial.seconds:>9.1f}"
    typer.echo(f"{trial.name:<14}{numbers}")


def _advise(comparison: Comparison, data: str, options: ChooseOptions) -> None:
    chosen, best = comparison.choice, comparison.tried[0]
    reason = "" if chosen is best else f", as good as {best.name} up to its standard error, and faster"
    typer.echo(f"use {chosen.name}: {comparison.measure} {chosen.mean:.4f}{reason}")
    if any(trial.skipped for trial in comparison.trials):
        typer.echo(f"models were left out; a higher `--minutes` than {options.minutes:g} allows more")
    typer.echo(f"  seq2tens fit {data} --model {chosen.name} --out DIR")
