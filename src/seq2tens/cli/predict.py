"""`seq2tens predict`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seq2tens.cli import _data, _files, _models

if TYPE_CHECKING:  # importing it takes seconds
    import numpy as np

Out = Annotated[
    Path,
    typer.Option(
        "--out", metavar="FILE", help="Where to write the table (.csv; - is stdout).", show_default=False
    ),
]


def predict(
    folder: _models.FolderArgument,
    data: _data.DataArgument,
    out: Out,
    force: _files.Force = False,
    split: _data.SplitOption = None,
    id_column: _data.IdOption = None,
    time_column: _data.TimeOption = None,
    label_column: _data.LabelOption = None,
    channel_columns: _data.ChannelsOption = None,
) -> None:
    """Predict the classes of DATA with a saved model.

    The table has the columns id, prediction and probability_CLASS for each class, and one row per sequence in
    the order of DATA; ids are those of a long table, else 0, 1, … Labels are not needed. Columns of a long
    table are found by the names they had in training. Data with two halves: the test half.

    Examples:

    \b
      seq2tens predict model new.csv --out predictions.csv
      seq2tens predict model new.csv --out - | sort
    """
    result = _files.output(out, "--out", (".csv",), force=force)
    reading = _data.Reading(split, id_column, time_column, label_column, channel_columns)
    classifier, found = _models.load_with_data(folder, data, reading, label_optional=True)
    probabilities = _models.probabilities(classifier, found.sequences)
    ids = range(len(found)) if found.ids is None else found.ids.tolist()
    result.write_text(_table(ids, probabilities, classifier.classes_.tolist()))
    result.tell()


def _table(ids: Iterable[Any], probabilities: np.ndarray, classes: list[Any]) -> str:
    """The predictions as text; probabilities with all their digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", "prediction", *(f"probability_{name}" for name in classes)])
    for key, row, best in zip(ids, probabilities.tolist(), probabilities.argmax(axis=1), strict=True):
        writer.writerow([key, classes[best], *row])
    return text.getvalue()
