"""Access to frames of pandas, polars and pyarrow; the only module that imports narwhals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from seq2tens._checks import require
from seq2tens.data._optional import import_optional
from seq2tens.data.tables.columns import index_columns
from seq2tens.data.tables.encoding import Column, Words

if TYPE_CHECKING:
    import narwhals as nw

Frame = Any  # of pandas, polars or pyarrow


def narwhals() -> Any:
    """Import narwhals, which is done when the first frame is read."""
    return import_optional("narwhals", "reading frames")


def is_frame(value: object) -> bool:
    """Whether an object is a frame that can be read."""
    return hasattr(value, "columns") and bool(narwhals().dependencies.is_into_dataframe(value))


def as_table(frame: Frame, name: str) -> tuple[nw.DataFrame[Any], tuple[str, ...]]:
    """Return the frame as a narwhals frame, and the columns that only number its rows."""
    index: tuple[str, ...] = ()
    if narwhals().dependencies.is_pandas_dataframe(frame):
        frame, index = _index_as_columns(_named(frame, name))
    table = columns_alone(frame, name)
    return table, (*index_columns(table.columns), *index)


def columns_alone(frame: Frame, name: str) -> nw.DataFrame[Any]:
    """Return the frame as a narwhals frame, without the index of pandas."""
    nw = narwhals()
    if nw.dependencies.is_pandas_dataframe(frame):
        frame = _named(frame, name)
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise TypeError(
            f"`{name}` must be a frame of pandas, polars or pyarrow (collect a lazy one first), got "
            f"{type(frame).__name__}"
        ) from error


def _named(frame: Any, name: str) -> Any:
    """Return a pandas frame with strings as column names."""
    names = [str(column) for column in frame.columns]
    require(len(set(names)) == len(names), f"`{name}` must have distinct column names, got {names}")
    return frame.set_axis(names, axis="columns")


def _index_as_columns(frame: Any) -> tuple[Any, tuple[str, ...]]:
    """Turn the index of a pandas frame into columns if its levels have names or hold dates."""
    levels = frame.index.nlevels
    dates = levels == 1 and frame.index.dtype.kind in "mM"
    unnamed = ["id", "time"] if levels == 2 else ["time"] if dates else [None] * levels
    names = [
        other if name is None else str(name) for name, other in zip(frame.index.names, unnamed, strict=True)
    ]
    named = [name for name in names if name is not None and name not in frame.columns]
    if len(named) < levels:
        return frame, ()
    return frame.rename_axis(names).reset_index(), tuple(named)


def concatenated(tables: Sequence[nw.DataFrame[Any]], name: str) -> nw.DataFrame[Any]:
    """Concatenate the rows of tables, which must have the same columns."""
    columns = tables[0].columns
    for i, table in enumerate(tables):
        names = table.columns
        require(
            names == columns, f"`{name}[{i}]` must have the columns {columns} of `{name}[0]`, got {names}"
        )
    nw = narwhals()
    if any(table.schema != tables[0].schema for table in tables):
        # polars does not concatenate columns of integers and floats
        tables = [table.with_columns(nw.selectors.numeric().cast(nw.Float64)) for table in tables]
    return nw.concat(tables, how="vertical")


def fill_columns(frame: Frame, columns: Mapping[str, np.ndarray]) -> Frame:
    """Return the frame with new values in those of these numeric columns that have missing entries."""
    nw = narwhals()
    table = nw.from_native(frame, eager_only=True)
    backend = table.implementation
    filled = []
    for name, values in columns.items():
        series = table[name]
        gaps = np.isnan(column_of(series).astype(np.float64)).any()  # type: ignore[union-attr]
        if gaps:
            dtype = series.dtype if series.dtype.is_float() else nw.Float64()
            filled.append(nw.new_series(name, values, backend=backend).cast(dtype))
    return table.with_columns(*filled).to_native()


def column_of(series: nw.Series[Any]) -> Column:
    """Convert to numbers (NaN where missing; also booleans), dates or durations (NaT), or `Words`."""
    nw = narwhals()
    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        array = series.to_numpy()
        plain = array.dtype.kind in "iuf"
        return array if plain else series.cast(nw.Float64).to_numpy().astype(np.float64)
    if dtype == nw.Datetime or dtype == nw.Date:
        # in a unit that can represent every date of the column
        ticks = {"ns": "ns", "us": "us"}.get(getattr(dtype, "time_unit", ""), "ms")
        dates = series.cast(nw.Datetime("ms")) if dtype == nw.Date else series
        return _ticks(dates, f"M8[{ticks}]", lambda filled: filled.dt.timestamp(ticks))
    if dtype == nw.Duration:
        return _ticks(series, "m8[ns]", lambda filled: filled.dt.total_nanoseconds())
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return words_of(series)
    return _numbers_of_objects(series)


def words_of(series: nw.Series[Any]) -> Words:
    """Convert a column to `Words` of any type; equal rows are often adjacent, so only runs are processed."""
    nw = narwhals()
    if series.dtype in (nw.Categorical, nw.Enum):
        series = series.cast(nw.String)
    changed = (series != series.shift(1)).fill_null(True).to_numpy().astype(bool)
    changed[:1] = True
    starts = np.flatnonzero(changed)
    return Words.of_runs(series[starts].to_list(), np.diff(starts, append=len(series)))


def _ticks(series: nw.Series[Any], dtype: str, count: Callable[[Any], Any]) -> np.ndarray:
    missing = series.is_null().to_numpy().astype(bool)
    whole = np.full(len(series), np.iinfo(np.int64).min)  # NaT
    whole[~missing] = count(series.drop_nulls() if missing.any() else series).to_numpy()
    return whole.view(dtype)


def _numbers_of_objects(series: nw.Series[Any]) -> np.ndarray:
    """Convert objects: numbers and booleans mixed with None, as pandas stores them, and empty columns."""
    values = [np.nan if value is None else value for value in series.to_list()]
    if not all(isinstance(value, bool | int | float) for value in values):
        raise TypeError(
            f"column `{series.name}` must hold numbers, strings, dates or durations, got {series.dtype}; "
            "pandas.to_datetime converts other types to dates"
        )
    return np.array(values, dtype=np.float64)
