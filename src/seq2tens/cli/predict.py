"""`seq2tens predict`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from seq2tens.cli import _data, _files, _models
from seq2tens.cli._options import option

if TYPE_CHECKING:  # importing it takes seconds
    import numpy as np

Out = Annotated[Path, option("FILE", "Where to write the table (.csv; - is stdout).", show_default=False)]


def predict(
    folder: _models.FolderArgument,
    data: _data.DataArgument,
    out: Out,
    *,
    force: _files.Force = False,
    reading: _data.Reading,
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
    classifier, labelled = _models.load_with_data(folder, data, reading, label_optional=True)
    probabilities = _models.probabilities(classifier, labelled.sequences)
    ids = range(len(labelled)) if labelled.ids is None else labelled.ids.tolist()
    result.write(_table(ids, probabilities, classifier.classes_.tolist()))


def _table(ids: Iterable[Any], probabilities: np.ndarray, classes: list[Any]) -> str:
    """The predictions as text; probabilities with all their digits."""
    lines = [_files.csv_line(["id", "prediction", *(f"probability_{name}" for name in classes)])]
    for key, row, best in zip(ids, probabilities.tolist(), probabilities.argmax(axis=1), strict=True):
        lines.append(_files.csv_line([key, classes[best], *row]))
    return "".join(lines)
