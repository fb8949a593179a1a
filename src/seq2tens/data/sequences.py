"""Sequences of unequal length, packed in one array."""

from __future__ import annotations

import collections.abc as abc
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from seq2tens._checks import require
from seq2tens.data import _packed

if TYPE_CHECKING:
    from seq2tens.data.labelled import Labelled

Rows = int | slice | abc.Sequence[int] | np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Sequences:
    """An immutable collection of sequences of variable length, each `(time, channels)`.

    Sequence `i` is `values[offsets[i]:offsets[i + 1]]`; an entry that was not observed is NaN. `times` holds
    the time of each step, `static` one row of features per sequence (NaN where unknown). The arrays are not
    copied; the attributes are read-only views.
    """

    values: Float[np.ndarray, "steps channels"]
    offsets: Int[np.ndarray, " bounds"]
    times: Float[np.ndarray, " steps"] | None = None
    static: Float[np.ndarray, "sequences features"] | None = None

    def __post_init__(self) -> None:
        values = _packed.check_values(self.values)
        offsets = _packed.check_offsets(self.offsets, len(values))
        _packed.check_finite(values, offsets)
        times = None if self.times is None else _packed.check_times(self.times, offsets)
        static = None if self.static is None else _packed.check_static(self.static, len(offsets) - 1)
        self._keep(values, offsets, times, static)

    @classmethod
    def from_list(
        cls,
        arrays: abc.Sequence[np.ndarray],
        times: abc.Sequence[np.ndarray] | None = None,
        static: np.ndarray | None = None,
    ) -> Sequences:
        """Pack arrays `(time, channels)`, with their times `(time,)` if there are any."""
        packed = [_packed.as_floating(f"arrays[{i}]", array) for i, array in enumerate(arrays)]
        _packed.check_list("arrays", packed)
        offsets = _packed.offsets_of([len(array) for array in packed])
        clock = None if times is None else _packed.join_times(times, packed)
        return cls(np.concatenate(packed), offsets, clock, static)

    @staticmethod
    def from_frame(frame: Any, **options: Any) -> Labelled:
        """Read a table of pandas, polars or pyarrow, with labels, ids and names.

        See `data.from_frame` for the arguments `id`, `time`, `label`, `channels`, `static`, `categories`,
        `unit`, `wide` and `like`.
        """
        from seq2tens.data.tables import from_frame

        return from_frame(frame, **options)

    @classmethod
    def concatenate(cls, parts: abc.Sequence[Sequences]) -> Sequences:
        """Concatenate collections, which must have the same channels and the same optional fields."""
        require(len(parts) > 0, "`parts` must hold at least one collection, got none")
        for i, part in enumerate(parts):
            _check_alike(i, part, parts[0])
        lengths = np.concatenate([part.lengths for part in parts])
        return cls._trusted(
            np.concatenate([part.values for part in parts]),
            _packed.offsets_of(lengths),
            _concatenate_present([part.times for part in parts]),
            _concatenate_present([part.static for part in parts]),
        )

    @property
    def lengths(self) -> Int[np.ndarray, " sequences"]:
        """Number of steps of each sequence."""
        return np.diff(self.offsets)

    @property
    def starts(self) -> Int[np.ndarray, " steps"]:
        """The first step of the sequence that each step belongs to."""
        return np.repeat(self.offsets[:-1], self.lengths)

    @property
    def positions(self) -> Int[np.ndarray, " steps"]:
        """The position of each step in its sequence, from 0."""
        return np.arange(len(self.values)) - self.starts

    @property
    def n_channels(self) -> int:
        """Number of channels, the same for all sequences."""
        return int(self.values.shape[1])

    def with_values(self, values: Float[np.ndarray, "steps other"]) -> Sequences:
        """Return the same steps with other values."""
        return Sequences(values, self.offsets, self.times, self.static)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Float[np.ndarray, "time channels"]]:
        for start, stop in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            yield self.values[start:stop]

    def __getitem__(self, rows: Rows) -> Sequences:
        """Return the chosen sequences, always as a collection: `sequences[3]` holds one sequence."""
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                return self._slice(start, max(start, stop))
        return self._take(_packed.row_numbers(rows, len(self)))

    def __repr__(self) -> str:
        lengths = self.lengths
        span = f"{lengths.min()}–{lengths.max()}" if len(self) else "none"
        extras = [name for name in ("times", "static") if getattr(self, name) is not None]
        described = [f"channels={self.n_channels}", f"lengths={span}", str(self.values.dtype), *extras]
        return f"Sequences({len(self)}, {', '.join(described)})"

    def _slice(self, start: int, stop: int) -> Sequences:
        """Return consecutive sequences without copying them."""
        first, last = self.offsets[start], self.offsets[stop]
        return self._trusted(
            self.values[first:last],
            self.offsets[start : stop + 1] - first,
            None if self.times is None else self.times[first:last],
            None if self.static is None else self.static[start:stop],
        )

    def _take(self, rows: Int[np.ndarray, " rows"]) -> Sequences:
        offsets = _packed.offsets_of(self.lengths[rows])
        steps = np.repeat(self.offsets[rows] - offsets[:-1], np.diff(offsets)) + np.arange(offsets[-1])
        return self._trusted(
            self.values[steps],
            offsets,
            None if self.times is None else self.times[steps],
            None if self.static is None else self.static[rows],
        )

    @classmethod
    def _trusted(cls, *fields: np.ndarray | None) -> Sequences:
        """Create without validation, from validated parts: a scan for every mini-batch would be slow."""
        new = object.__new__(cls)
        new._keep(*fields)
        return new

    def _keep(self, *fields: Any) -> None:
        for name, array in zip(("values", "offsets", "times", "static"), fields, strict=True):
            object.__setattr__(self, name, None if array is None else _packed.read_only(array))


def _check_alike(i: int, part: Sequences, first: Sequences) -> None:
    require(
        part.n_channels == first.n_channels,
        f"`parts[{i}]` must have {first.n_channels} channels like `parts[0]`, got {part.n_channels}",
    )
    for name in ("times", "static"):
        own_field, first_field = getattr(part, name), getattr(first, name)
        require(
            (own_field is None) == (first_field is None),
            f"`parts` must all have `{name}` or none of them, but `parts[{i}]` differs from `parts[0]`",
        )
    if part.static is not None and first.static is not None:
        require(
            part.static.shape[1] == first.static.shape[1],
            f"`parts[{i}].static` must have {first.static.shape[1]} features like `parts[0]`, "
            f"got {part.static.shape[1]}",
        )


def _concatenate_present(arrays: list[np.ndarray | None]) -> np.ndarray | None:
    present = [array for array in arrays if array is not None]
    return np.concatenate(present) if present else None
