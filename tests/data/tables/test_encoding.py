"""Categories and booleans as channels."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from seq2tens.data import Columns, Encoding, from_frame, read

KINDS = {"pandas": pd.DataFrame, "polars": pl.from_pandas}


def frame(**columns):
    rows = len(next(iter(columns.values())))
    return pd.DataFrame({"id": [1] * rows, **columns})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["str", "category"])
def test_few_categories_have_a_channel_each(kind, dtype):
    table = frame(gait=pd.Series(["walk", "run", None, "walk"], dtype=dtype), x=[1.0, 2.0, 3.0, 4.0])
    found = from_frame(KINDS[kind](table))
    assert found.channels == ("gait=run", "gait=walk", "x")
    expected = [[0, 1, 1], [1, 0, 2], [np.nan, np.nan, 3], [0, 1, 4]]
    np.testing.assert_array_equal(found.sequences.values, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_booleans_are_0_and_1(kind):
    found = from_frame(KINDS[kind](frame(on=[True, False, True], maybe=[True, None, False])))
    assert found.channels == ("on", "maybe")
    np.testing.assert_array_equal(found.sequences.values, [[1, 1], [0, np.nan], [1, 0]])


@pytest.mark.parametrize("kind", KINDS)
def test_unseen_categories_are_none_of_those_of_training(kind):
    train = from_frame(KINDS[kind](frame(gait=["walk", "run"], x=[1.0, 2.0])))
    test = from_frame(KINDS[kind](frame(x=[1, 2], more=[0, 0], gait=["swim", "walk"])), like=train)
    assert test.channels == train.channels
    assert test.sequences.values.tolist() == [[0, 0, 1], [0, 1, 2]]


@pytest.mark.parametrize("kind", KINDS)
def test_many_categories_are_hashed(kind):
    rooms = [f"room {i}" for i in range(40)]
    train = from_frame(KINDS[kind](frame(room=rooms)), categories=["room"])
    assert train.channels[:2] == ("room#0", "room#1")
    assert train.sequences.values.shape == (40, 16)
    assert set(np.unique(train.sequences.values)) == {-1, 1}
    assert len(np.unique(train.sequences.values, axis=0)) == 40
    # the same pattern in every table and on every machine, for words that training has not seen as well
    test = from_frame(KINDS[kind](frame(room=["cellar", "room 7"])), like=train)
    assert test.sequences.values[1].tolist() == train.sequences.values[7].tolist()
    assert test.sequences.values[0].astype(int).tolist() == [
        int(sign) for sign in np.where(np.array(list(CELLAR)) == "+", 1, -1)
    ]


CELLAR = "+--+-++++-+--+--"


def test_numbers_may_be_categories():
    whole = from_frame(frame(room=[3, 11, 3]), categories=["room"])
    gaps = from_frame(frame(room=[3.0, 11.0, np.nan]), categories=["room"])
    assert whole.channels == gaps.channels == ("room=11", "room=3")


def test_an_encoding_is_plain_text():
    encoding = from_frame(frame(gait=["walk", "run"], x=[1.0, 2.0])).encoding
    assert Encoding.from_state(json.loads(json.dumps(encoding.state()))) == encoding
    columns = Columns(label=None, categories=("gait",), encoding=encoding)
    assert Columns.from_state(json.loads(json.dumps(columns.state()))) == columns
    # as models have kept them so far
    old = {"id": "stay", "time": "hour", "label": None, "channels": ["x"], "label_optional": False}
    assert Columns.from_state(old) == Columns("stay", "hour", None, ("x",))


def test_categories_in_files(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id,time,gait,on,label\n1,0,walk,true,u\n1,1,N/A,FALSE,u\n2,0,run,null,v\n")
    found = read(path, Columns(categories=("gait",)))
    assert found.channels == ("gait=run", "gait=walk", "on")
    np.testing.assert_array_equal(found.sequences.values, [[0, 1, 1], [np.nan, np.nan, 0], [1, 0, np.nan]])
    path.write_text("id,time,on,gait\n1,0,1,swim\n")
    again = read(path, Columns(label=None, encoding=found.encoding))
    assert again.sequences.values.tolist() == [[0, 0, 1]]
    table = tmp_path / "x.parquet"
    frame(gait=["walk", "run"]).to_parquet(table)
    assert read(table, Columns(label=None)).channels == ("gait=run", "gait=walk")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: from_frame(frame(x=["1.5", "O.5"])),
            "column `x` holds the number '1.5' as text; make it a column of numbers, or name it in "
            "`categories` if it "
            "is categorical",
        ),
        (
            lambda: from_frame(frame(note=[f"note {i}" for i in range(17)])),
            "column `note` holds 17 different strings, more than 16; name it in `categories` if it is meant "
            "to be a "
            "channel, or name the `channels`",
        ),
        (
            lambda: from_frame(frame(x=["a"]), like=from_frame(frame(x=[1.0]))),
            "column `x` must hold numbers, got strings such as 'a'",
        ),
        (
            lambda: from_frame(frame(y=[1.0]), like=from_frame(frame(x=[1.0]))),
            "`frame` must have a column `x`, found id, y",
        ),
        (
            lambda: from_frame(frame(x=[1.0]), categories=["y"]),
            "`frame` must have a channel or static feature `y` to read as categories, found none",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        call()
    assert str(raised.value) == message
