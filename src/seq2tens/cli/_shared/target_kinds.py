"""The kinds of targets: classes, or numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seq2tens._errors import ArgumentError
from seq2tens.cli._shared.catalogue import Task
from seq2tens.cli._shell import UserError, note

if TYPE_CHECKING:  # importing them takes seconds
    import numpy as np

    from seq2tens.data import Labelled

# Integer labels are classes, unless there are more distinct ones than this and than half the sequences.
MANY_CLASSES = 20


def guess_task(labelled: Labelled, data: str) -> Task:
    """Infer the task from the labels; a message on stderr announces regression."""
    numbers = _as_numbers(_labels(labelled, data))
    if numbers is None:
        return "classification"
    fractional = numbers[numbers % 1 != 0]
    distinct = len(set(numbers.tolist()))
    if len(fractional) == 0 and distinct <= max(MANY_CLASSES, len(numbers) / 2):
        return "classification"
    reason = f"numbers such as {fractional[0]:g}" if len(fractional) else f"{distinct} different numbers"
    note(f"the labels are {reason}, so this is regression; `--task classification` treats them as classes")
    return "regression"


def classes_of(labelled: Labelled, data: str) -> list[Any]:
    """The classes that occur in DATA; raise an error if the estimators would refuse the labels."""
    from seq2tens.estimators import as_labels

    labels = _labels(labelled, data)
    try:
        as_labels(labels, len(labelled))
    except ArgumentError as error:
        raise UserError(f"{error}; `--task regression` predicts numbers".replace("`y`", data)) from error
    return sorted(set(labels.tolist()))


def values_of(labelled: Labelled, data: str) -> np.ndarray:
    """The targets of a regression, one per sequence."""
    labels = _labels(labelled, data)
    numbers = _as_numbers(labels)
    if numbers is None:
        wrong = next(label for label in labels.tolist() if _as_numbers([label]) is None)
        raise UserError(
            f"{data} must have a finite number for every sequence, got {wrong!r}; `--label-column` names "
            "another column of a table, and `--task classification` predicts classes"
        )
    return numbers


def _labels(labelled: Labelled, data: str) -> np.ndarray:
    if labelled.labels is None:
        raise UserError(f"{data} must have labels, got none; `--label-column` names the column of a table")
    return labelled.labels


def _as_numbers(labels: Any) -> np.ndarray | None:
    """The labels as finite numbers, or None if one of them is not."""
    import numpy as np

    try:
        numbers = np.asarray(labels).astype(np.float64)
    except (TypeError, ValueError):
        return None
    return numbers if np.isfinite(numbers).all() else None
