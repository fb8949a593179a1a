"""Conversion of frames of pandas, polars and pyarrow to sequences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seq2tens._checks import ArgumentError, require
from seq2tens.data.labelled import Labelled
from seq2tens.data.sequences import Sequences
from seq2tens.data.tables.columns import Columns, Fail
from seq2tens.data.tables.encoding import Encoding, Words, encode, learn
from seq2tens.data.tables.interchange import Frame, as_table, column_of, concatenated, is_frame, words_of
from seq2tens.data.tables.long import Table
from seq2tens.data.tables.wide import gather_wide

if TYPE_CHECKING:
    import narwhals as nw

Names = Sequence[str]


def from_frame(
    frame: Frame | Sequence[Frame],
    *,
    id: str | None = "id",
    time: str | None = "time",
    label: str | None = "label",
    channels: Names | Mapping[str, Names] | None = None,
    static: Names | Frame | None = None,
    categories: Names = (),
    unit: str = "s",
    wide: bool = False,
    like: Labelled | None = None,
) -> Labelled:
    """Read sequences, with labels, ids and channel names, from a frame of pandas, polars or pyarrow.

    A long table has one row per step, in any order; a wide one has one row per sequence and a column for each
    step of a channel, such as `x_0`, `x_1`, …, where trailing steps without any value are padding. In a list
    of frames, each is one sequence. The levels of a pandas index that have names, or that hold dates, count
    as columns.

    Args:
        frame: the table.
        id: the column that identifies the sequences; None: all rows are one sequence.
        time: the column of times: numbers, datetimes (with or without a time zone) or durations. Without a
            column `"time"`, or with None, the steps are in the order of the rows.
        label: the column of labels, one per sequence; optional.
        channels: the columns to use (default: all remaining columns); for a wide table the names of channels
            without the number of the step, or the columns of each channel.
        static: columns that do not change within a sequence, or another frame with one row per id; ids
            without a row are unknown (NaN).
        categories: categorical columns, with any number of categories. Columns of strings and booleans are
            detected without it; up to 16 categories are one-hot encoded, more are hashed to 16 channels.
        unit: unit of datetimes and durations, one of ns, us, ms, s, min, h, d. Datetimes are counted from the
            first step of their sequence.
        wide: whether the table has one row per sequence.
        like: the training data, whose channels, categories and unit are used. An unseen category is 0 in
            every channel of the column, or hashed like the others.
    """
    static_columns = () if static is None or is_frame(static) else _names("static", static)
    columns = Columns(
        id,
        time,
        label,
        None if channels is None else _names("channels", channels),
        label_optional=label == "label",
        static=static_columns,
        categories=_names("categories", categories),
        unit=unit if like is None or like.encoding is None else like.encoding.unit or unit,
        encoding=None if like is None else like.encoding,
    )
    if wide:
        table, index = as_table(frame, "frame")
        groups = channels if isinstance(channels, Mapping) else None
        labelled = gather_wide(table, columns, groups, index, column_of)
    else:
        labelled = read_frames(frame, columns).gather(columns)
    return labelled if static is None or static_columns else _with_static(labelled, static, columns)


def read_frames(frames: Frame | Sequence[Frame], columns: Columns, name: str = "frame") -> Table:
    """Read one long table, or a list of tables with one sequence each."""
    if not isinstance(frames, list | tuple):
        return read_frame(frames, columns, name)
    require(
        len(frames) > 0, f"`{name}` must hold at least one frame (its columns are the channels), got none"
    )
    tables = [as_table(frame, f"{name}[{i}]") for i, frame in enumerate(frames)]
    for i, (table, _) in enumerate(tables):
        require(len(table) > 0, f"`{name}[{i}]` must have rows, got none")
    rows = concatenated([table for table, _ in tables], name)
    lengths = np.array([len(table) for table, _ in tables])
    whole = _table(rows, replace(columns, id=None), tables[0][1], name)
    return replace(whole, ids=Words(np.repeat(np.arange(len(tables)), lengths), list(range(len(tables)))))


def read_frame(frame: Frame, columns: Columns, name: str = "frame") -> Table:
    """Read one long table."""
    table, index = as_table(frame, name)
    return _table(table, columns, index, name)


def _table(table: nw.DataFrame[Any], columns: Columns, index: tuple[str, ...], name: str) -> Table:
    present = columns.resolve(table.columns, lambda reason: ArgumentError(f"`{name}` {reason}"), index)
    require(len(table) > 0, f"`{name}` must have rows, got none")
    return table_of(
        table, present, index, lambda row, reason: ArgumentError(f"`{name}`, row {row}: {reason}")
    )


def table_of(
    table: nw.DataFrame[Any],
    columns: Columns,
    index: tuple[str, ...],
    error: Callable[[int, str], Exception],
) -> Table:
    """Convert the columns of a frame to the `Table` that all sources share."""
    id, label = (None if name is None else words_of(table[name]) for name in (columns.id, columns.label))
    times = None if columns.time is None else column_of(table[columns.time])
    require(
        not isinstance(times, Words),
        f"column `{columns.time}` must hold numbers, dates or durations, got strings; "
        "pandas.to_datetime or polars' str.to_datetime converts them to dates",
    )
    channels, static = (
        [column_of(table[name]) for name in names] for names in (columns.channels or (), columns.static)
    )
    return Table(columns, id, times, channels, static, label, error, index)  # type: ignore[arg-type]


def _names(argument: str, names: Names | Mapping[str, Names]) -> tuple[str, ...]:
    require(not isinstance(names, str), f"`{argument}` must be a list of names, got {names!r}")
    return tuple(map(str, names))


def _with_static(labelled: Labelled, static: Frame, columns: Columns) -> Labelled:
    """Join the features of another table by id."""

    def fail(reason: str) -> Exception:
        return ArgumentError(f"`static` {reason}")

    require(
        labelled.ids is not None,
        "`static` must be a list of columns if there is no `id` to join by, got a frame",
    )
    table, index = as_table(static, "static")
    named = Columns(columns.id, None, None).resolve(table.columns, fail, index)
    names = named.channels or ()
    known = columns.encoding
    if known is not None:
        names = tuple(column.name for column in known.static)
        Columns(named.id, None, None, names).resolve(table.columns, fail, index)
    rows = _rows_by_id(labelled, words_of(table[str(named.id)]), fail)
    features = [column_of(table[name]) for name in names]
    encodings = learn(names, features, columns.categories) if known is None else known.static
    encoded = np.concatenate([encode(encodings, features), [[np.nan] * _width(encodings)]])[rows]
    old = labelled.sequences
    encoding = replace(labelled.encoding or Encoding(()), static=tuple(encodings))
    sequences = Sequences(old.values, old.offsets, old.times, encoded)
    return replace(labelled, sequences=sequences, encoding=encoding)


def _width(encodings: Sequence[Any]) -> int:
    return sum(len(encoding.channels) for encoding in encodings)


def _rows_by_id(labelled: Labelled, ids: Words, fail: Fail) -> np.ndarray:
    """Return the row of each sequence, -1 if there is none."""
    require(bool((ids.codes >= 0).all()), "`static` must name the id of every row, got a missing one")
    if len(ids.codes) > len(ids.keys):
        repeated = ids.keys[int(np.argmax(np.bincount(ids.codes)))]
        raise fail(f"must have one row per id, got more for {repeated!r}")
    places = dict(zip(ids.keys, range(len(ids.keys)), strict=True))
    keys = [] if labelled.ids is None else labelled.ids.tolist()
    rows = [places.get(key, -1) for key in keys]
    if keys and max(rows) < 0:
        raise fail(f"must have rows for ids such as {keys[0]!r}, got only others such as {ids.keys[0]!r}")
    return np.array(rows)
