"""Conversion to and from the pandas formats of sktime: a list of frames, or a frame with two index levels.

The index holds the times; dates are counted in seconds from the first step. Sequences without times get the
integers 0, 1, …, and such an index is read as no times; `static` is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seq2tens._checks import ArgumentError, require
from seq2tens.data._optional import import_optional
from seq2tens.data.labelled import Labelled
from seq2tens.data.sequences import Sequences
from seq2tens.data.tables.columns import Columns
from seq2tens.data.tables.encoding import Encoding, Words
from seq2tens.data.tables.frames import table_of
from seq2tens.data.tables.interchange import columns_alone, concatenated

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]


def from_df_list(frames: Sequence[pd.DataFrame], *, name: str = "frames") -> Sequences:
    """Convert one frame per sequence: rows are steps, columns are channels. Errors use the name `name`."""
    return read_df_list(frames, name).sequences


def read_df_list(
    frames: Sequence[pd.DataFrame], name: str = "frames", encoding: Encoding | None = None
) -> Labelled:
    """Do the same as `from_df_list`, but keep the names of the channels; `encoding` is that of training."""
    require(
        len(frames) > 0, f"`{name}` must hold at least one frame (its columns are the channels), got none"
    )
    tables = [columns_alone(frame, f"{name}[{i}]") for i, frame in enumerate(frames)]
    clocks = [_clock(f"{name}[{i}].index", frame.index) for i, frame in enumerate(frames)]
    lengths = [len(frame) for frame in frames]
    ids = Words(np.repeat(np.arange(len(frames)), lengths), list(range(len(frames))))
    times = None if _counts(clocks) else np.concatenate(clocks)
    return _channels(concatenated(tables, name), ids, times, encoding, name)


def to_df_list(sequences: Sequences) -> list[pd.DataFrame]:
    """Return one frame per sequence, with columns `var_0`, `var_1`, …"""
    pd = import_optional("pandas", "`to_df_list`")
    columns = _column_names(sequences)
    clocks = _clocks(sequences)
    return [
        pd.DataFrame(
            values.copy(), index=pd.RangeIndex(len(values)) if clocks is None else clocks[i], columns=columns
        )
        for i, values in enumerate(sequences)
    ]


def from_multiindex(frame: pd.DataFrame, *, name: str = "frame") -> Sequences:
    """Convert a frame indexed by (instance, time); the rows of an instance must be contiguous.

    Errors use the name `name`.
    """
    return read_multiindex(frame, name).sequences


def read_multiindex(frame: pd.DataFrame, name: str = "frame", encoding: Encoding | None = None) -> Labelled:
    """Do the same as `from_multiindex`, but keep the names of channels and instances.

    `encoding` is that of training.
    """
    levels = frame.index.nlevels
    require(levels == 2, f"`{name}.index` must have 2 levels (instance, time), got {levels}")
    codes = np.asarray(frame.index.codes[0])
    require(
        bool((codes >= 0).all()), f"`{name}.index` must name the instance of every row, got a missing one"
    )
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    instances = frame.index.levels[0][codes[starts]]
    for instance in instances[instances.duplicated()]:
        raise ArgumentError(
            f"`{name}` must keep the rows of an instance together, but those of {instance} are apart"
        )
    offsets = np.append(starts, len(frame))
    clock = _clock(f"{name}.index", frame.index.get_level_values(1))
    times = None if _counts(np.split(clock, offsets[1:-1])) else clock
    ids = Words(np.repeat(np.arange(len(starts)), np.diff(offsets)), instances.tolist())
    return _channels(columns_alone(frame, name), ids, times, encoding, name)


def _channels(
    table: Any, ids: Words, times: np.ndarray | None, encoding: Encoding | None, name: str
) -> Labelled:
    """Convert all columns to channels; the rows are in the order of steps."""
    known = table.columns if encoding is None else [column.name for column in encoding.columns]
    require(
        table.columns == known, f"`{name}` must have the columns {known} as in `fit`, got {table.columns}"
    )
    columns = Columns(None, None, None, tuple(known), encoding=encoding)
    long = table_of(table, columns, (), lambda row, reason: ArgumentError(f"`{name}`, row {row}: {reason}"))
    whole = replace(long, ids=ids, times=times)
    require(whole.order is None, f"`{name}.index` must not go back in time within a sequence")
    return whole.gather(columns)


def to_multiindex(sequences: Sequences) -> pd.DataFrame:
    """Return a frame indexed by (`instances`, `timepoints`), with columns `var_0`, `var_1`, …"""
    pd = import_optional("pandas", "`to_multiindex`")
    lengths = sequences.lengths
    for i in np.flatnonzero(lengths == 0):
        raise ArgumentError(f"`sequences` must all have steps (rows of the frame), but sequence {i} has none")
    instances = np.repeat(np.arange(len(sequences)), lengths)
    clock = sequences.positions if sequences.times is None else sequences.times
    index = pd.MultiIndex.from_arrays([instances, clock], names=["instances", "timepoints"])
    return pd.DataFrame(sequences.values.copy(), index=index, columns=_column_names(sequences))


def _column_names(sequences: Sequences) -> list[str]:
    return [f"var_{channel}" for channel in range(sequences.n_channels)]


def _clocks(sequences: Sequences) -> list[np.ndarray] | None:
    times = sequences.times
    return None if times is None else np.split(times.copy(), sequences.offsets[1:-1])


def _clock(name: str, index: pd.Index) -> np.ndarray:
    """Return the index as numbers, dates or durations; dates with a time zone are converted to UTC."""
    clock = index.to_numpy("M8[ns]") if getattr(index, "tz", None) is not None else index.to_numpy()
    if clock.dtype.kind not in "iufmM":
        raise TypeError(f"`{name}` must hold numbers, dates or durations, got {index.dtype}")
    return clock


def _counts(clocks: Sequence[np.ndarray]) -> bool:
    """Whether every index is the integers 0, 1, …, and so carries no times."""
    return all(clock.dtype.kind in "iu" and np.array_equal(clock, np.arange(len(clock))) for clock in clocks)
