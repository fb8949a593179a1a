"""`seq2tens predict`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from seq2tens.cli import _data, _files, _models
from seq2tens.cli._options import choice, option
from seq2tens.cli._shared import tables

if TYPE_CHECKING:  # importing them takes seconds
    import numpy as np

    from seq2tens.data import Labelled

SUFFIXES = tuple(f".{name}" for name in tables.WRITERS)
Out = Annotated[Path, option("FILE", f"Where to write the table ({', '.join(SUFFIXES)}; - is stdout).")]
Format = Annotated[
    str | None,
    choice("csv|parquet|jsonl", "Format of the table. [default: by the suffix, else csv]", "--format"),
]


def predict(
    folder: _models.FolderArgument,
    data: _data.DataArgument,
    *,
    out: Out = _files.STDOUT,
    form: Format = None,
    force: _files.Force = False,
    reading: _data.Reading,
) -> None:
    """Predict the class, or the number, of each sequence of DATA with a saved model.

    Writes a table with the columns id, prediction and, where classes are predicted, probability_CLASS for
    each of them: one row per sequence, in the order of DATA. Ids are those of a long table, else 0, 1, …
    Labels are not needed. Columns of a long table are matched by their names in training. If DATA has a
    training and a test set, the test set is used.

    Examples:

    \b
      seq2tens predict model new.csv --out predictions.csv
      seq2tens predict model new.csv --format jsonl | head
    """
    form = tables.table_format(out, form)
    result = _files.output(out, "--out", SUFFIXES, force=force)
    _data.check(data)
    model, labelled = _models.load_with_data(folder, data, reading, label_optional=True)
    tables.write(_ids(labelled) | _predictions(model, labelled), result, form)


def _ids(labelled: Labelled) -> dict[str, np.ndarray]:
    import numpy as np

    return {"id": np.arange(len(labelled)) if labelled.ids is None else labelled.ids}


def _predictions(model: Any, labelled: Labelled) -> dict[str, np.ndarray]:
    """The columns with the predictions."""
    if not _models.is_classifier(model):
        return {"prediction": _models.values(model, labelled.sequences)}
    probabilities, classes = _models.probabilities(model, labelled.sequences), model.classes_
    columns = {f"probability_{name}": probabilities[:, i] for i, name in enumerate(classes.tolist())}
    return {"prediction": classes[probabilities.argmax(axis=1)], **columns}
