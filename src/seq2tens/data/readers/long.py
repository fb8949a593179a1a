"""Long tables, `.csv` and `.parquet`: one row per step, with columns for id, time, channels and label."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from seq2tens.data import _packed
from seq2tens.data.labelled import Labelled
from seq2tens.data.readers._text import ReadError, malformed
from seq2tens.data.sequences import Sequences

NO_LABELS = "; `label=None` reads a table without labels"


@dataclass(frozen=True)
class Columns:
    """Which column is what. `label=None`: no labels; `channels=None`: every column that is nothing else.

    With `label_optional` a table without the column `label` is read as one without labels.
    """

    id: str = "id"
    time: str = "time"
    label: str | None = "label"
    channels: tuple[str, ...] | None = None
    label_optional: bool = False

    def named(self) -> list[str]:
        """Every column that must be there."""
        return [self.id, self.time, *([] if self.label is None else [self.label]), *(self.channels or ())]

    def among(self, found: Sequence[str], path: Path) -> Columns:
        """The columns of a table that has these ones: `label` and `channels` as they are there."""
        if self.label_optional and self.label not in found:
            return replace(self, label=None, label_optional=False).among(found, path)
        for name in self.named():
            if name not in found:
                hint = NO_LABELS if name == self.label else ""
                raise malformed(path, f"must have a column `{name}`, found {', '.join(found)}{hint}")
        if len(set(found)) < len(found):
            twice = next(name for i, name in enumerate(found) if name in found[:i])
            raise malformed(path, f"must not name two columns alike, got `{twice}` twice")
        channels = self.channels or tuple(name for name in found if name not in self.named())
        if not channels:
            raise malformed(path, f"must have a column for a channel, found {', '.join(found)}")
        return replace(self, channels=channels)


@dataclass(frozen=True)
class Table:
    """A long table in memory; `error(row, reason)` knows where the row stood in its file."""

    columns: Columns
    ids: Sequence[Hashable]
    times: Float[np.ndarray, " rows"]
    values: Float[np.ndarray, "rows channels"]
    labels: Sequence[Any] | None
    error: Callable[[int, str], ReadError]

    def gather(self) -> Labelled:
        """Group the rows: sequences in the order in which ids first appear, steps in the order of time."""
        numbers: dict[Hashable, int] = {}
        codes = np.array([numbers.setdefault(key, len(numbers)) for key in self.ids], dtype=np.int64)
        order = np.lexsort((self.times, codes))
        offsets = _packed.offsets_of(np.bincount(codes, minlength=len(numbers)))
        sequences = Sequences(self.values[order], offsets, self.times[order])
        return Labelled(
            sequences, self._one_label_each(codes), np.array(list(numbers)), self.columns.channels
        )

    def _one_label_each(self, codes: np.ndarray) -> np.ndarray | None:
        if self.labels is None:
            return None
        first: dict[int, Any] = {}
        for row, (code, label) in enumerate(zip(codes.tolist(), self.labels, strict=True)):
            if first.setdefault(code, label) != label:
                raise self.error(
                    row,
                    f"column `{self.columns.label}` must be constant within an id, "
                    f"got {label!r} after {first[code]!r} for id {self.ids[row]!r}",
                )
        return np.array(list(first.values()))
