"""`from_frame`: long and wide tables of pandas, polars and pyarrow."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from data.ragged import assert_same
from seq2tens.data import Sequences, from_frame

KINDS = {"pandas": pd.DataFrame, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}
LONG = pd.DataFrame(
    {
        "stay": ["b", "a", "b", "a"],
        "hour": [1.5, 0.0, 0.5, 2.0],
        "pulse": [61.0, np.nan, 60.0, 95.0],
        "beats": [3, 1, 2, 4],
        "died": ["no", "yes", "no", "yes"],
    }
)
HOW = {"id": "stay", "time": "hour", "label": "died"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_table_in_any_order(kind):
    found = Sequences.from_frame(KINDS[kind](LONG), **HOW)
    assert found.ids.tolist() == ["b", "a"]
    assert found.labels.tolist() == ["no", "yes"]
    assert found.channels == ("pulse", "beats")
    assert found.sequences.times.tolist() == [0.5, 1.5, 0, 2]
    np.testing.assert_array_equal(found.sequences.values, [[60, 2], [61, 3], [np.nan, 1], [95, 4]])
    assert found[1].channels == found.channels
    assert found[1].encoding is found.encoding


@pytest.mark.parametrize("kind", KINDS)
def test_standard_names_in_any_case(kind):
    frame = LONG.rename(columns={"stay": "ID", "hour": "Time", "died": "LABEL"})
    assert_same(from_frame(KINDS[kind](frame)).sequences, from_frame(LONG, **HOW).sequences)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_steps_where_there_is_no_time(kind):
    found = from_frame(KINDS[kind](LONG.drop(columns="hour")), id="stay", label="died")
    assert found.sequences.times is None
    assert found.sequences.values[:, 1].tolist() == [3, 2, 1, 4]
    one = from_frame(KINDS[kind](LONG), id=None, time=None, channels=["beats"])
    assert one.sequences.lengths.tolist() == [4]
    assert one.labels is None
    assert one.ids is None


@pytest.mark.parametrize("kind", KINDS)
def test_float32_stays(kind):
    frame = KINDS[kind](LONG[["stay", "pulse"]].astype({"pulse": np.float32}))
    assert from_frame(frame, id="stay").sequences.values.dtype == np.float32


@pytest.mark.parametrize("kind", KINDS)
def test_each_frame_of_a_list_is_a_sequence(kind):
    parts = [LONG[LONG["stay"] == stay].drop(columns="stay") for stay in ("b", "a")]
    parts[1] = parts[1].astype({"beats": float})
    found = from_frame(
        [KINDS[kind](part.reset_index(drop=True)) for part in parts], time="hour", label="died"
    )
    assert_same(found.sequences, from_frame(LONG, **HOW).sequences)
    assert found.labels.tolist() == ["no", "yes"]
    assert found.ids.tolist() == [0, 1]


def test_levels_of_a_pandas_index_are_columns():
    expected = from_frame(LONG, **HOW)
    assert_same(from_frame(LONG.set_index(["stay", "hour"]), **HOW).sequences, expected.sequences)
    unnamed = LONG.set_index(["stay", "hour"]).rename_axis([None, None])
    assert_same(from_frame(unnamed, label="died").sequences, expected.sequences)
    squares = LONG.set_index(pd.Index([0, 1, 4, 9], name="row"))
    found = from_frame(squares, **HOW)
    assert found.channels == expected.channels
    assert found.index_columns == ("row",)


@pytest.mark.parametrize("kind", KINDS)
def test_a_wide_table(kind):
    frame = pd.DataFrame(
        {
            "id": [7, 8],
            "x_0": [1.0, 4.0],
            "x_10": [np.nan, np.nan],
            "x_2": [2.0, np.nan],
            "y_0": [5.0, np.nan],
            "y_2": [6.0, np.nan],
            "y_10": [7.0, np.nan],
            "label": ["u", "v"],
            "age": [50.0, 60.0],
        }
    )
    found = from_frame(KINDS[kind](frame), wide=True, static=["age"])
    assert found.channels == ("x", "y")
    assert found.sequences.lengths.tolist() == [3, 1]
    np.testing.assert_array_equal(found.sequences.values, [[1, 5], [2, 6], [np.nan, 7], [4, np.nan]])
    assert found.sequences.static.tolist() == [[50], [60]]
    assert (found.ids.tolist(), found.labels.tolist()) == ([7, 8], ["u", "v"])
    some = from_frame(KINDS[kind](frame), wide=True, channels=["y"])
    assert some.sequences.values[:3].ravel().tolist() == [5, 6, 7]
    told = from_frame(
        KINDS[kind](frame), wide=True, channels={"first": ["x_0", "y_0"], "last": ["y_2", "x_2"]}
    )
    assert told.channels == ("first", "last")
    np.testing.assert_array_equal(told.sequences.values, [[1, 6], [5, 2], [4, np.nan]])


def test_a_wide_table_of_numbers_alone():
    found = from_frame(pd.DataFrame(np.arange(6.0).reshape(2, 3)), wide=True)
    assert found.channels == ("value",)
    assert found.sequences.values.ravel().tolist() == [0, 1, 2, 3, 4, 5]
    assert found.ids is None


@pytest.mark.parametrize("kind", KINDS)
def test_static_tables_are_joined_by_id(kind):
    static = pd.DataFrame({"stay": ["c", "a"], "age": [1.0, 2.0], "ward": ["x", "y"]})
    found = from_frame(KINDS[kind](LONG), static=KINDS[kind](static), **HOW)
    assert found.encoding.features == ("age", "ward=x", "ward=y")
    np.testing.assert_array_equal(found.sequences.static, [[np.nan] * 3, [2, 0, 1]])
    other = pd.DataFrame({"ward": ["z"], "stay": ["a"], "age": [3.0], "more": [0]})
    again = from_frame(KINDS[kind](LONG), static=KINDS[kind](other), like=found, **HOW)
    np.testing.assert_array_equal(again.sequences.static[1], [3, 0, 0])


def test_static_columns():
    frame = LONG.assign(age=[50, 60, 50, 60])
    found = from_frame(frame, static=["age"], **HOW)
    assert found.sequences.static.tolist() == [[50], [60]]
    assert found.channels == ("pulse", "beats")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: from_frame(LONG),
            "`frame` must have a column `id`, found stay, hour, pulse, beats, died; `id=None` reads the "
            "whole table "
            "as one sequence",
        ),
        (
            lambda: from_frame(LONG, id="stay", time="minute"),
            "`frame` must have a column `minute`, found stay, hour, pulse, beats, died",
        ),
        (
            lambda: from_frame(LONG.assign(ID=1, Id=2)),
            "`frame` must have one column `id`, found ID and Id; pass the name of the right one",
        ),
        (
            lambda: from_frame(LONG[:0], **HOW),
            "`frame` must have rows, got none",
        ),
        (
            lambda: from_frame(LONG.assign(died=list("uvwx")), **HOW),
            "`frame`, row 2: column `died` must be constant within an id, got 'w' after 'u' for id 'b'",
        ),
        (
            lambda: from_frame(LONG.assign(stay=[None, "a", "b", "b"]), **HOW),
            "`frame`, row 0: column `stay` must not be empty",
        ),
        (
            lambda: from_frame(LONG.assign(hour=[1, 2, np.nan, 4]), **HOW),
            "`frame`, row 2: column `hour` must not be empty",
        ),
        (
            lambda: from_frame(LONG, static=["beats"], **HOW),
            "`frame`, row 2: column `beats` must be constant within an id to be static, got another value",
        ),
        (
            lambda: from_frame([]),
            "`frame` must hold at least one frame (its columns are the channels), got none",
        ),
        (
            lambda: from_frame([LONG, LONG[["pulse"]]]),
            "`frame[1]` must have the columns ['stay', 'hour', 'pulse', 'beats', 'died'] of `frame[0]`, "
            "got ['pulse']",
        ),
        (
            lambda: from_frame(pd.DataFrame([[1, 2]], columns=["x", "x"])),
            "`frame` must have distinct column names, got ['x', 'x']",
        ),
        (lambda: from_frame([LONG, LONG[:0]]), "`frame[1]` must have rows, got none"),
        (lambda: from_frame(LONG, channels="pulse"), "`channels` must be a list of names, got 'pulse'"),
        (
            lambda: from_frame(LONG, wide=True, id="stay", label="died"),
            "`frame` as a wide table must have columns of steps such as `x_0`, got `hour`; name the "
            "`channels`, or "
            "pass the columns of each",
        ),
        (
            lambda: from_frame(pd.DataFrame({"x_0": [1.0], "x_1": [1.0], "y_0": [2.0]}), wide=True),
            "`frame` must have the same steps for every channel, but those of `y` differ from those of `x`",
        ),
        (
            lambda: from_frame(pd.DataFrame({"x_0": [1.0]}), wide=True, channels=["y"]),
            "`frame` must have columns for the channel `y`, found x_0",
        ),
        (
            lambda: from_frame(
                pd.DataFrame({"x_0": [1.0]}), wide=True, channels={"x": ["x_0"], "y": ["y_0"]}
            ),
            "`frame` must have a column `y_0`, found x_0",
        ),
        (
            lambda: from_frame(LONG, static=pd.DataFrame({"stay": ["a", "a"], "age": [1, 2]}), **HOW),
            "`static` must have one row per id, got more for 'a'",
        ),
        (
            lambda: from_frame(LONG, static=pd.DataFrame({"stay": [1, 2], "age": [1, 2]}), **HOW),
            "`static` must have rows for ids such as 'b', got only others such as 1",
        ),
        (
            lambda: from_frame(LONG, static=pd.DataFrame({"age": [1, 2]}), **HOW),
            "`static` must have a column `stay`, found age; `id=None` reads the whole table as one sequence",
        ),
        (
            lambda: from_frame(LONG, id=None, static=pd.DataFrame({"age": [1, 2]}), channels=["beats"]),
            "`static` must be a list of columns if there is no `id` to join by, got a frame",
        ),
        (
            lambda: from_frame(LONG, unit="weeks", **HOW),
            "`unit` must be one of 'ns', 'us', 'ms', 's', 'min', 'h', 'd', got 'weeks'",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        call()
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: from_frame(pl.from_pandas(LONG).lazy()),
            "`frame` must be a frame of pandas, polars or pyarrow (collect a lazy one first), got LazyFrame",
        ),
        (
            lambda: from_frame(pl.DataFrame({"id": [1], "x": [[1.0, 2.0]]})),
            "column `x` must hold numbers, strings, dates or durations, got List(Float64); "
            "pandas.to_datetime converts other types to dates",
        ),
    ],
)
def test_other_types_are_refused(call, message):
    with pytest.raises(TypeError) as raised:
        call()
    assert str(raised.value) == message


def test_without_narwhals_it_is_told_how_to_get_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "narwhals", None)
    with pytest.raises(ImportError) as raised:
        from_frame(LONG)
    assert str(raised.value) == "reading frames needs narwhals: pip install narwhals"
