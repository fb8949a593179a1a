"""Long tables, with one row per step, from any source."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int, Shaped

from seq2tens.data import _packed
from seq2tens.data.labelled import Labelled
from seq2tens.data.sequences import Sequences
from seq2tens.data.tables import clock
from seq2tens.data.tables.columns import Columns
from seq2tens.data.tables.encoding import Column, ColumnEncoding, Encoding, Words, encode, learn


@dataclass(frozen=True)
class Table:
    """A long table in memory; `error(row, reason)` returns an error that names the row in its source.

    `columns` are those of the table, `index` those that number its rows. Without `ids`, all rows are one
    sequence; without `times`, the steps are in the order of the rows.
    """

    columns: Columns
    ids: Words | None
    times: Shaped[np.ndarray, " rows"] | None
    channels: Sequence[Column]
    static: Sequence[Column]
    labels: Words | None
    error: Callable[[int, str], Exception]
    index: tuple[str, ...] = ()

    def gather(self, requested: Columns) -> Labelled:
        """Group the rows: sequences in the order in which ids first appear, steps in the order of time.

        Warns of a channel that was not requested and looks like a label.
        """
        self._check_filled()
        encoding = self._encoding()
        offsets = _packed.offsets_of(np.bincount(self._codes, minlength=self._n))
        times = (
            None
            if self.times is None
            else clock.as_numbers(self._ordered(self.times), offsets, self.columns.unit)
        )
        values = self._ordered(encode(encoding.columns, self.channels))
        sequences = Sequences(values, offsets, times, self._static(encoding.static))
        if requested.channels is None and requested.encoding is None:
            _warn_of_labels(sequences, encoding.channels)
        ids = None if self.ids is None else np.array(self.ids.keys)
        unused = tuple(name for name in self.index if name not in self.columns.named())
        return Labelled(sequences, self._one_label_each(), ids, encoding.channels, unused, encoding)

    @cached_property
    def order(self) -> Int[np.ndarray, " rows"] | None:
        """The row of each step; None if the rows are in order."""
        codes, times = self._codes, self.times
        later = codes[1:] > codes[:-1]
        same = codes[1:] == codes[:-1]
        if times is not None:
            same &= times[1:] >= times[:-1]
        if (later | same).all():
            return None
        return np.argsort(codes, kind="stable") if times is None else np.lexsort((times, codes))

    @cached_property
    def _codes(self) -> Int[np.ndarray, " rows"]:
        """The sequence of each row."""
        rows = len(self.channels[0].codes if isinstance(self.channels[0], Words) else self.channels[0])
        return np.zeros(rows, dtype=np.int64) if self.ids is None else self.ids.codes

    @property
    def _n(self) -> int:
        return 1 if self.ids is None else len(self.ids.keys)

    def _ordered(self, array: np.ndarray) -> np.ndarray:
        return array if self.order is None else array[self.order]

    def _check_filled(self) -> None:
        for name, words in ((self.columns.id, self.ids), (self.columns.label, self.labels)):
            if words is not None:
                self._refuse(words.codes < 0, f"column `{name}` must not be empty")
        if self.times is not None:
            # NaN and NaT do not equal themselves
            self._refuse(self.times != self.times, f"column `{self.columns.time}` must not be empty")

    def _refuse(self, rows: Shaped[np.ndarray, " rows"], reason: str) -> None:
        for row in np.flatnonzero(rows):
            raise self.error(int(row), reason)

    def _encoding(self) -> Encoding:
        """Return the encoding of training, or learn one for these columns."""
        columns = self.columns
        unit = columns.unit if self.times is not None and clock.is_date(self.times) else None
        if columns.encoding is not None:
            return Encoding(columns.encoding.columns, columns.encoding.static, unit)
        channels = learn(columns.channels or (), self.channels, columns.categories)
        return Encoding(channels, learn(columns.static, self.static, columns.categories), unit)

    def _static(self, encodings: Sequence[ColumnEncoding]) -> Float[np.ndarray, "sequences features"] | None:
        if not self.static:
            return None
        features = encode(encodings, self.static)
        first = features[self._first_rows]
        for row, feature in np.argwhere(~_same(features, first[self._codes])):
            name = [encoding.name for encoding in encodings for _ in encoding.channels][feature]
            raise self.error(
                int(row), f"column `{name}` must be constant within an id to be static, got another value"
            )
        return first

    @cached_property
    def _first_rows(self) -> Int[np.ndarray, " sequences"]:
        rows = len(self._codes)
        first = np.zeros(self._n, dtype=np.int64)
        first[self._codes[::-1]] = np.arange(
            rows - 1, -1, -1
        )  # backwards, so that the first row is written last
        return first

    def _one_label_each(self) -> Shaped[np.ndarray, " sequences"] | None:
        if self.labels is None:
            return None
        codes, keys = self.labels
        first = codes[self._first_rows]
        for row in np.flatnonzero(codes != first[self._codes]):
            raise self.error(
                int(row),
                f"column `{self.columns.label}` must be constant within an id, "
                f"got {keys[codes[row]]!r} after {keys[first[self._codes[row]]]!r} for {self._id_of(row)}",
            )
        return np.array([keys[code] for code in first])

    def _id_of(self, row: int) -> str:
        return "the one sequence" if self.ids is None else f"id {self.ids.keys[self.ids.codes[row]]!r}"


def _warn_of_labels(sequences: Sequences, channels: tuple[str, ...]) -> None:
    """Warn of channels that look like labels: a second target would give the answer away."""
    if not (sequences.lengths > 1).all():
        sequences = sequences[sequences.lengths > 1]  # a single step is always constant
    for channel, values in zip(channels, sequences.values.T, strict=True):
        first = values[sequences.offsets[:-1]]
        varies = np.nanmax(first, initial=-np.inf) > np.nanmin(first, initial=np.inf)
        if not varies or not _same(values[sequences.offsets[:-1] + 1], first).all():
            continue  # most channels change at the second step
        if _same(values, np.repeat(first, sequences.lengths)).all():
            warnings.warn(
                f"column `{channel}` is read as a channel, but like a label it does not change within "
                "any sequence; name the channels if it is not one",
                stacklevel=4,
            )


def _same(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return where two arrays are equal or both missing."""
    return (one == other) | (np.isnan(one) & np.isnan(other))
