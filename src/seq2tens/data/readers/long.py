"""Long tables, `.csv` and `.parquet`: one row per step, with columns for id, time, channels and label."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Hashable, Sequence
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
# What pandas calls the numbers of rows that it writes as a column: in `.csv`, read again, in `.parquet`, and
# after `reset_index`.
INDEX = re.compile(r"|Unnamed: \d+|__index_level_\d+__|index")


@dataclass(frozen=True)
class Columns:
    """Which column is what. `label=None`: no labels; `channels=None`: every column that is nothing else.

    Numbers of rows, which pandas writes as a column, are no channel unless `channels` names them; `channels`
    and `index_columns` of what is read tell which columns are which. With `label_optional` a table without
    the column `label` is read as one without labels.
    """

    id: str = "id"
    time: str = "time"
    label: str | None = "label"
    channels: tuple[str, ...] | None = None
    label_optional: bool = False

    def named(self) -> list[str]:
        """Every column that must be there."""
        return [self.id, self.time, *([] if self.label is None else [self.label]), *(self.channels or ())]

    def among(self, names: Sequence[str], path: Path, index: Collection[str] = ()) -> Columns:
        """The columns of a table that has these ones, `index` among them: `label` and `channels` as they are
        there."""
        if self.label_optional and self.label not in names:
            return replace(self, label=None, label_optional=False).among(names, path, index)
        for name in self.named():
            if name not in names:
                hint = NO_LABELS if name == self.label else ""
                raise malformed(path, f"must have a column `{name}`, found {', '.join(names)}{hint}")
        if len(set(names)) < len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise malformed(path, f"must not name two columns alike, got `{twice}` twice")
        taken = {*self.named(), *index}
        channels = self.channels or tuple(name for name in names if name not in taken)
        if not channels:
            raise malformed(path, f"must have a column for a channel, found {', '.join(names)}")
        return replace(self, channels=channels)


def index_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Those that hold the numbers of rows, by their names."""
    return tuple(name for name in names if INDEX.fullmatch(name))


@dataclass(frozen=True)
class Table:
    """A long table in memory; `error(row, reason)` knows where the row stood in its file."""

    columns: Columns
    ids: Sequence[Hashable]
    times: Float[np.ndarray, " rows"]
    values: Float[np.ndarray, "rows channels"]
    labels: Sequence[Any] | None
    error: Callable[[int, str], ReadError]
    index: tuple[str, ...] = ()

    def gather(self, requested: Columns) -> Labelled:
        """Group the rows: sequences in the order in which ids first appear, steps in the order of time.

        A channel that nobody asked for and that looks like a label is warned of.
        """
        numbers: dict[Hashable, int] = {}
        codes = np.array([numbers.setdefault(key, len(numbers)) for key in self.ids], dtype=np.int64)
        order = np.lexsort((self.times, codes))
        offsets = _packed.offsets_of(np.bincount(codes, minlength=len(numbers)))
        sequences = Sequences(self.values[order], offsets, self.times[order])
        channels, index = (
            self.columns.channels or (),
            tuple(name for name in self.index if name not in self.columns.named()),
        )
        if requested.channels is None:
            _warn_of_labels(sequences, channels)
        return Labelled(sequences, self._one_label_each(codes), np.array(list(numbers)), channels, index)

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


def _warn_of_labels(sequences: Sequences, channels: tuple[str, ...]) -> None:
    """A second target among the channels gives the answer away."""
    longer = sequences[sequences.lengths > 1]  # of single steps nothing can be said
    values = longer.values
    first = np.repeat(values[longer.offsets[:-1]], longer.lengths, axis=0)
    constant = ((values == first) | (np.isnan(values) & np.isnan(first))).all(axis=0)
    varies = np.nanmax(values, axis=0, initial=-np.inf) > np.nanmin(values, axis=0, initial=np.inf)
    for channel in np.flatnonzero(constant & varies):
        warnings.warn(
            f"column `{channels[channel]}` is read as a channel, but like a label it does not change within "
            "any sequence; name the channels if it is none",
            stacklevel=4,
        )
