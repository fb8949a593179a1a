"""Frames of pandas and polars and tables of pyarrow: the door through which narwhals is imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seq2tens._checks import ArgumentError, require
from seq2tens.data._optional import optional
from seq2tens.data.labelled import Labelled
from seq2tens.data.sequences import Sequences
from seq2tens.data.tables.columns import Columns, Fail, index_columns
from seq2tens.data.tables.encoding import Column, Encoding, Words, encode, learn
from seq2tens.data.tables.long import Table
from seq2tens.data.tables.wide import gather_wide

if TYPE_CHECKING:
    import narwhals as nw

Frame = Any  # of pandas, polars or pyarrow
Names = Sequence[str]


def narwhals() -> Any:
    """The package, imported when the first frame is read."""
    return optional("narwhals", "reading frames")


def is_frame(thing: object) -> bool:
    """Whether it is a frame of a kind that can be read."""
    return hasattr(thing, "columns") and bool(narwhals().dependencies.is_into_dataframe(thing))


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
    """Sequences, with labels, ids and the names of channels, from a frame of pandas, polars or pyarrow.

    A long table has one row per step, in any order; a wide one has one row per sequence and a column for each
    step of a channel, such as `x_0`, `x_1`, …, where trailing steps without any value are none. Of a list of
    frames each is one sequence. The levels of a pandas index that have names, or that hold dates, count as
    columns.

    Args:
        frame: the table.
        id: the column that tells sequences apart; None: all rows are one sequence.
        time: the column of times: numbers, dates (with or without a zone) or durations. Where there is no
            `"time"`, or with None, the steps are in the order of the rows.
        label: the column of labels, one per sequence. Where there is no `"label"`, there are none.
        channels: the columns to use (default: every column that is nothing else); for a wide table the names
            of channels without the number of the step, or the columns of each channel.
        static: columns that do not change within a sequence, or another frame with one row per id; ids
            without a row are unknown (NaN).
        categories: columns of words, of any number of different ones. Columns of words and of booleans are
            found without it; up to 16 categories have a channel each, more are hashed to 16 channels.
        unit: in which dates and durations are counted, one of ns, us, ms, s, min, h, d. Dates are counted
            from the first step of their sequence.
        wide: whether the table has one row per sequence.
        like: the training data, whose channels, categories and unit are used. A category that it does not
            have is 0 in every channel of the column, or hashed as all others.
    """
    own_static = () if static is None or is_frame(static) else _names("static", static)
    columns = Columns(
        id,
        time,
        label,
        None if channels is None else _names("channels", channels),
        label_optional=label == "label",
        static=own_static,
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
    return labelled if static is None or own_static else _with_static(labelled, static, columns)


def read_frames(frames: Frame | Sequence[Frame], columns: Columns, name: str = "frame") -> Table:
    """One long table, or several of which each is one sequence."""
    if not isinstance(frames, list | tuple):
        return read_frame(frames, columns, name)
    require(
        len(frames) > 0, f"`{name}` must hold at least one frame (its columns are the channels), got none"
    )
    tables = [as_table(frame, f"{name}[{i}]") for i, frame in enumerate(frames)]
    joined = concatenated([table for table, _ in tables], name)
    lengths = np.array([len(table) for table, _ in tables])
    whole = _table(joined, replace(columns, id=None), tables[0][1], name)
    return replace(whole, ids=Words(np.repeat(np.arange(len(tables)), lengths), list(range(len(tables)))))


def read_frame(frame: Frame, columns: Columns, name: str = "frame") -> Table:
    """One long table."""
    table, index = as_table(frame, name)
    return _table(table, columns, index, name)


def _table(table: nw.DataFrame[Any], columns: Columns, index: tuple[str, ...], name: str) -> Table:
    present = columns.among(table.columns, lambda reason: ArgumentError(f"`{name}` {reason}"), index)
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
    """The columns that are there, in the form that all sources share."""
    id, label = (None if name is None else words_of(table[name]) for name in (columns.id, columns.label))
    times = None if columns.time is None else column_of(table[columns.time])
    require(
        not isinstance(times, Words),
        f"column `{columns.time}` must hold numbers, dates or durations, got words; "
        "pandas.to_datetime or polars' str.to_datetime make dates of them",
    )
    channels, static = (
        [column_of(table[name]) for name in names] for names in (columns.channels or (), columns.static)
    )
    return Table(columns, id, times, channels, static, label, error, index)  # type: ignore[arg-type]


def as_table(frame: Frame, name: str) -> tuple[nw.DataFrame[Any], tuple[str, ...]]:
    """The frame for narwhals, and which of its columns only number the rows."""
    index: tuple[str, ...] = ()
    if narwhals().dependencies.is_pandas_dataframe(frame):
        frame, index = _index_as_columns(_named(frame, name))
    table = columns_alone(frame, name)
    return table, (*index_columns(table.columns), *index)


def columns_alone(frame: Frame, name: str) -> nw.DataFrame[Any]:
    """The frame for narwhals, without the index that pandas has."""
    nw = narwhals()
    if nw.dependencies.is_pandas_dataframe(frame):
        frame = _named(frame, name)
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise TypeError(
            f"`{name}` must be a frame of pandas, polars or pyarrow (a lazy one collected), got "
            f"{type(frame).__name__}"
        ) from error


def _named(frame: Any, name: str) -> Any:
    """A pandas frame with texts for the names of columns."""
    names = [str(column) for column in frame.columns]
    require(len(set(names)) == len(names), f"`{name}` must not name two columns alike, got {names}")
    return frame.set_axis(names, axis="columns")


def _index_as_columns(frame: Any) -> tuple[Any, tuple[str, ...]]:
    """A pandas frame with those levels of its index as columns that have names or hold dates."""
    levels = frame.index.nlevels
    dates = levels == 1 and frame.index.dtype.kind in "mM"
    unnamed = ["id", "time"] if levels == 2 else ["time"] if dates else [None] * levels
    names = [
        other if name is None else str(name) for name, other in zip(frame.index.names, unnamed, strict=True)
    ]
    kept = [name for name in names if name is not None and name not in frame.columns]
    if len(kept) < levels:
        return frame, ()
    return frame.rename_axis(names).reset_index(), tuple(kept)


def concatenated(tables: Sequence[nw.DataFrame[Any]], name: str) -> nw.DataFrame[Any]:
    """All rows; the columns must be the same."""
    columns = tables[0].columns
    for i, table in enumerate(tables):
        own = table.columns
        require(own == columns, f"`{name}[{i}]` must have the columns {columns} of `{name}[0]`, got {own}")
    nw = narwhals()
    if any(table.schema != tables[0].schema for table in tables):
        # whole numbers here and fractions there; polars would refuse
        tables = [table.with_columns(nw.selectors.numeric().cast(nw.Float64)) for table in tables]
    return nw.concat(tables, how="vertical")


def fill_columns(frame: Frame, columns: Mapping[str, np.ndarray]) -> Frame:
    """A frame with other values in those of these columns of numbers in which something was missing."""
    nw = narwhals()
    table = nw.from_native(frame, eager_only=True)
    backend = table.implementation
    filled = []
    for name, values in columns.items():
        own = table[name]
        gaps = np.isnan(column_of(own).astype(np.float64)).any()  # type: ignore[union-attr]
        if gaps:
            dtype = own.dtype if own.dtype.is_float() else nw.Float64()
            filled.append(nw.new_series(name, values, backend=backend).cast(dtype))
    return table.with_columns(*filled).to_native()


def column_of(series: nw.Series[Any]) -> Column:
    """Numbers (NaN where missing), booleans as numbers, dates and durations (NaT where missing), or words."""
    nw = narwhals()
    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        array = series.to_numpy()
        plain = array.dtype.kind in "iuf"
        return array if plain else series.cast(nw.Float64).to_numpy().astype(np.float64)
    if dtype == nw.Datetime or dtype == nw.Date:
        dates = series.cast(nw.Datetime("ns")) if dtype == nw.Date else series
        return _nanoseconds(dates, "M8[ns]", lambda filled: filled.dt.timestamp("ns"))
    if dtype == nw.Duration:
        return _nanoseconds(series, "m8[ns]", lambda filled: filled.dt.total_nanoseconds())
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return words_of(series)
    return _numbers_of_objects(series)


def words_of(series: nw.Series[Any]) -> Words:
    """A column as words of any type; like rows often stand together, so only runs are looked at."""
    nw = narwhals()
    if series.dtype in (nw.Categorical, nw.Enum):
        series = series.cast(nw.String)
    changed = (series != series.shift(1)).fill_null(True).to_numpy().astype(bool)
    changed[:1] = True
    starts = np.flatnonzero(changed)
    return Words.of_runs(series[starts].to_list(), np.diff(starts, append=len(series)))


def _nanoseconds(series: nw.Series[Any], dtype: str, count: Callable[[Any], Any]) -> np.ndarray:
    missing = series.is_null().to_numpy().astype(bool)
    whole = np.full(len(series), np.iinfo(np.int64).min)  # NaT
    whole[~missing] = count(series.drop_nulls() if missing.any() else series).to_numpy()
    return whole.view(dtype)


def _numbers_of_objects(series: nw.Series[Any]) -> np.ndarray:
    """Numbers and booleans beside None, as pandas keeps them, and columns of nothing at all."""
    values = [np.nan if value is None else value for value in series.to_list()]
    if not all(isinstance(value, bool | int | float) for value in values):
        raise TypeError(
            f"column `{series.name}` must hold numbers, words, dates or durations, got {series.dtype}"
        )
    return np.array(values, dtype=np.float64)


def _names(argument: str, names: Names | Mapping[str, Names]) -> tuple[str, ...]:
    require(not isinstance(names, str), f"`{argument}` must be a list of names, got {names!r}")
    return tuple(map(str, names))


def _with_static(labelled: Labelled, static: Frame, columns: Columns) -> Labelled:
    """With the features of another table, found by id."""

    def fail(reason: str) -> Exception:
        return ArgumentError(f"`static` {reason}")

    require(labelled.ids is not None, "`static` as a frame is joined by id, but there is no `id`")
    table, index = as_table(static, "static")
    found = Columns(columns.id, None, None).among(table.columns, fail, index)
    names = found.channels or ()
    known = columns.encoding
    if known is not None:
        names = tuple(column.name for column in known.static)
        Columns(found.id, None, None, names).among(table.columns, fail, index)
    rows = _rows_by_id(labelled, words_of(table[str(found.id)]), fail)
    features = [column_of(table[name]) for name in names]
    encodings = learn(names, features, columns.categories) if known is None else known.static
    encoded = np.concatenate([encode(encodings, features), [[np.nan] * _width(encodings)]])[rows]
    own = labelled.sequences
    encoding = replace(labelled.encoding or Encoding(()), static=tuple(encodings))
    sequences = Sequences(own.values, own.offsets, own.times, encoded)
    return replace(labelled, sequences=sequences, encoding=encoding)


def _width(encodings: Sequence[Any]) -> int:
    return sum(len(encoding.channels) for encoding in encodings)


def _rows_by_id(labelled: Labelled, ids: Words, fail: Fail) -> np.ndarray:
    """The row of each sequence, -1 where there is none."""
    require(bool((ids.codes >= 0).all()), "`static` must name the id of every row, got a missing one")
    if len(ids.codes) > len(ids.keys):
        twice = ids.keys[int(np.argmax(np.bincount(ids.codes)))]
        raise fail(f"must have one row per id, got more for {twice!r}")
    places = dict(zip(ids.keys, range(len(ids.keys)), strict=True))
    wanted = [] if labelled.ids is None else labelled.ids.tolist()
    rows = [places.get(key, -1) for key in wanted]
    if wanted and max(rows) < 0:
        raise fail(f"must have rows for ids such as {wanted[0]!r}, got only others such as {ids.keys[0]!r}")
    return np.array(rows)
