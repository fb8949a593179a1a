"""`seq2tens evaluate`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seq2tens.cli import _data, _files, _models
from seq2tens.cli._options import option
from seq2tens.cli._shared import target_kinds
from seq2tens.cli._shell import UserError

if TYPE_CHECKING:  # importing them takes seconds
    import numpy as np
    from matplotlib.figure import Figure

    from seq2tens.data import Labelled
    from seq2tens.estimators import Evaluation

Confusion = Annotated[Path | None, option("FILE", "Plot the confusion matrix (.png, .svg, .pdf).")]
Scatter = Annotated[
    Path | None, option("FILE", "Regression: plot predictions against targets (.png, .svg, .pdf).")
]
Json = Annotated[
    Path | None, option("FILE", "Write the numbers for other programs (.json; - is stdout).", "--json")
]


def evaluate(
    folder: _models.FolderArgument,
    data: _data.DataArgument,
    *,
    confusion: Confusion = None,
    scatter: Scatter = None,
    json_file: Json = None,
    force: _files.Force = False,
    reading: _data.Reading,
) -> None:
    """Compare a saved model's predictions with the labels.

    Prints accuracy, balanced accuracy (the mean recall of the classes), areas under the ROC and the
    precision-recall curve, and a table of the classes; for regressors the root mean squared error, the mean
    absolute error and R². The areas refer to the second of two classes, or are one-versus-rest means over
    more classes; they are omitted unless every class occurs in DATA. If DATA has a training and a test set,
    the test set is used.

    Examples:

    \b
      seq2tens evaluate model test.csv
      seq2tens evaluate model JapaneseVowels --confusion confusion.png --json scores.json
    """
    picture = _files.picture(confusion, "--confusion", force=force)
    cloud = _files.picture(scatter, "--scatter", force=force)
    numbers = None if json_file is None else _files.output(json_file, "--json", (".json",), force=force)
    _data.check(data)
    model, labelled = _models.load_with_data(folder, data, reading, label_optional=False)
    if _models.is_classifier(model):
        _refuse(cloud, "--scatter", "regressors, `--confusion` for classifiers", model)
        evaluation, draw = _evaluate_classes(model, labelled, data)
    else:
        _refuse(picture, "--confusion", "classifiers, `--scatter` for regressors", model)
        evaluation, draw = _evaluate_values(model, labelled, data)
    if numbers is not None:
        numbers.write(json.dumps(evaluation.to_dict(), indent=2, ensure_ascii=False) + "\n")
    if (drawn := picture or cloud) is not None:
        drawn.draw(draw())


def _refuse(picture: _files.Output | None, name: str, required: str, model: Any) -> None:
    if picture is not None:
        raise UserError(f"`{name}` is for {required}, got a {type(model).__name__}")


def _evaluate_classes(classifier: Any, labelled: Labelled, data: str) -> tuple[Any, Callable[[], Figure]]:
    """Print the measures; return them and a function that plots the confusion matrix."""
    from seq2tens import plots
    from seq2tens.estimators import evaluate as compare

    target_kinds.classes_of(labelled, data)
    classes = classifier.classes_
    labels = _as_classes(labelled.labels, classes, data)
    probabilities = _models.probabilities(classifier, labelled.sequences)
    evaluation = compare(labels, probabilities, classes)
    _print(evaluation)
    names = [row.label for row in evaluation.classes]
    return evaluation, lambda: plots.confusion_matrix(labels, classes[probabilities.argmax(axis=1)], names)


def _evaluate_values(regressor: Any, labelled: Labelled, data: str) -> tuple[Any, Callable[[], Figure]]:
    """Print the measures; return them and a function that plots predictions against targets."""
    from seq2tens import plots
    from seq2tens.estimators import evaluate_regression

    targets, values = target_kinds.values_of(labelled, data), _models.values(regressor, labelled.sequences)
    evaluation = evaluate_regression(targets, values)
    for name, value in evaluation.to_dict().items():
        typer.echo(f"{name:<18} {_shown(value)}")
    return evaluation, lambda: plots.predictions(targets, values)


def _as_classes(labels: np.ndarray | None, classes: np.ndarray, data: str) -> list[Any]:
    """Convert labels to the type of the model's classes: in a .csv file all labels are strings."""
    known = {str(name): name for name in classes.tolist()}
    named = [] if labels is None else [known.get(str(label), label) for label in labels.tolist()]
    if not set(named) & set(known.values()):
        raise UserError(
            f"the labels of {data} must be classes of the model ({', '.join(known)}), got {named[0]!r}; "
            "`--label-column` names another column of a table"
        )
    return named


def _print(evaluation: Evaluation) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    for name in ("sequences", "accuracy", "balanced_accuracy", "auroc", "auprc"):
        console.print(f"{name.replace('_', ' '):<18} {_shown(getattr(evaluation, name))}")
    table = Table("class", box=None, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("sequences", "precision", "recall", "f1"):
        table.add_column(name, justify="right")
    for row in evaluation.classes:
        cells = (row.support, row.precision, row.recall, row.f1)
        table.add_row(Text(str(row.label)), *map(_shown, cells))
    console.print()
    console.print(table)


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)
