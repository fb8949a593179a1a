"""Folders of tables with one sequence each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from seq2tens.data.labelled import Labelled
from seq2tens.data.readers._text import malformed
from seq2tens.data.sequences import Sequences
from seq2tens.data.tables.columns import Columns

Read = Callable[[Path, Columns], Labelled]


def read_folder(folder: Path, columns: Columns, files: Sequence[Path], read: Read) -> Labelled:
    """Read one sequence per file, in the order of the file names; ids are the names without suffix.

    If the files are in subfolders, the names of these are the labels; otherwise a column of the files is.
    """
    if not files:
        raise malformed(folder, "must hold tables, one for each sequence, got none")
    nested = [path.parent != folder for path in files]
    if any(nested) and not all(nested):
        unnested = files[nested.index(False)]
        raise malformed(
            folder, f"must hold tables or folders of tables, got both: {unnested.name} is in no folder"
        )
    single = replace(columns, id=None, label=None if nested[0] else columns.label, label_optional=True)
    parts = [read(path, single) for path in files]
    for path, part in zip(files, parts, strict=True):
        if columns.channels is None and any(name.lower() == "id" for name in part.channels or ()):
            raise malformed(
                path, "must be one sequence, as every table of a folder, but it has a column `id`"
            )
        if part.channels != parts[0].channels:
            raise malformed(
                path, f"must have the channels {parts[0].channels} of {files[0]}, got {part.channels}"
            )
        if (part.labels is None) != (parts[0].labels is None):
            raise malformed(path, f"must have labels if {files[0]} has them")
    return replace(
        parts[0],
        sequences=Sequences.concatenate([part.sequences for part in parts]),
        labels=_labels(files, parts, nested=nested[0]),
        ids=np.array([name_of(path) for path in files]),
    )


def name_of(path: Path) -> str:
    """Return the name of a file without its suffixes."""
    return path.name.removesuffix(".gz").rpartition(".")[0]


def _labels(files: Sequence[Path], parts: Sequence[Labelled], *, nested: bool) -> np.ndarray | None:
    if nested:
        return np.array([path.parent.name for path in files])
    labels = [part.labels for part in parts if part.labels is not None]
    return np.concatenate(labels) if labels else None
