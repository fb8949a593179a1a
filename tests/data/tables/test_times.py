"""Dates, durations and zones as times."""

from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from seq2tens.data import Columns, from_frame, read
from seq2tens.data.tables.clock import parse_date

KINDS = {"pandas": pd.DataFrame, "polars": pl.from_pandas}


def frame(times, **columns):
    return pd.DataFrame({"id": [1, 1, 2], "time": times, "x": [1.0, 2.0, 3.0], **columns})


DATES = pd.to_datetime(["2024-03-30 12:00", "2024-03-31 12:00", "2030-01-01 00:00"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("resolution", ["s", "ms", "us", "ns"])
def test_dates_are_counted_from_the_first_step(kind, resolution):
    found = from_frame(KINDS[kind](frame(DATES.as_unit(resolution))))
    assert found.sequences.times.tolist() == [0, 86400, 0]
    assert found.encoding.unit == "s"
    hours = from_frame(KINDS[kind](frame(DATES.as_unit(resolution))), unit="h")
    assert hours.sequences.times.tolist() == [0, 24, 0]
    assert hours.encoding.unit == "h"


@pytest.mark.parametrize("kind", KINDS)
def test_dates_with_a_zone_are_moments(kind):
    """In Berlin clocks were put forward in that night."""
    found = from_frame(KINDS[kind](frame(DATES.tz_localize("Europe/Berlin"))), unit="h")
    assert found.sequences.times.tolist() == [0, 23, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_durations_and_numbers(kind):
    durations = pd.to_timedelta([30, 90, 60], unit="s")
    assert from_frame(KINDS[kind](frame(durations)), unit="min").sequences.times.tolist() == [0.5, 1.5, 1]
    assert from_frame(KINDS[kind](frame([3, 4, 5]))).sequences.times.tolist() == [3, 4, 5]
    assert from_frame(KINDS[kind](frame([3, 4, 5]))).encoding.unit is None
    # nanoseconds since 1970, too many for a double
    start = 1_700_000_000_000_000_001
    assert from_frame(KINDS[kind](frame([start, start + 3, 7]))).sequences.times.tolist() == [0, 3, 0]


def test_dates_of_other_centuries():
    old = pl.DataFrame({"id": [1, 1], "time": [datetime(1500, 1, 1), datetime(1500, 1, 2)], "x": [1.0, 2.0]})
    assert from_frame(old).sequences.times.tolist() == [0, 86400]


def test_other_times_are_refused():
    message = (
        "column `time` must hold numbers, strings, dates or durations, got Object; pandas.to_datetime conv"
    )
    with pytest.raises(TypeError, match=message):
        from_frame(frame([date(2024, 5, 1)] * 3))


def test_days_of_polars():
    days = pl.DataFrame({"id": [1, 1], "time": DATES[:2].date.tolist(), "x": [1.0, 2.0]})
    assert from_frame(days, unit="d").sequences.times.tolist() == [0, 1]


def test_an_index_of_dates():
    one = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=DATES)
    assert from_frame(one, id=None, unit="d").sequences.times[:2].tolist() == [0, 1]
    assert from_frame([one[:2], one[2:]], unit="d").sequences.times.tolist() == [0, 1, 0]
    assert from_frame(one, id=None).channels == ("x",)


@pytest.mark.parametrize("kind", KINDS)
def test_missing_dates_and_texts_are_refused(kind):
    with pytest.raises(ValueError, match="`frame`, row 1: column `time` must not be empty"):
        from_frame(KINDS[kind](frame([DATES[0], pd.NaT, DATES[1]])))
    texts = (
        "column `time` must hold numbers, dates or durations, got strings; pandas.to_datetime or polars' str"
    )
    with pytest.raises(ValueError, match=texts):
        from_frame(KINDS[kind](frame(["2024-01-01", "2024-01-02", "2024-01-03"])))


@pytest.mark.parametrize("kind", KINDS)
def test_dates_are_no_channel(kind):
    message = r"column `since` must hold numbers or strings, got datetime64\[us\]; only `time` may hold dates"
    with pytest.raises(ValueError, match=message):
        from_frame(KINDS[kind](frame([0, 1, 0], since=DATES)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-05-01", "2024-05-01T00:00"),
        ("2024-05-01 13:30", "2024-05-01T13:30"),
        ("2024-05-01T13:30:05.123456789", "2024-05-01T13:30:05.123456789"),
        ("2024-05-01T13:30:00Z", "2024-05-01T13:30"),
        ("2024-05-01T13:30:00+02:00", "2024-05-01T11:30"),
        ("2024-05-01T13:30:00-0230", "2024-05-01T16:00"),
    ],
)
def test_dates_as_text(text, expected):
    assert parse_date(f" {text} ") == np.datetime64(expected, "ns")


@pytest.mark.parametrize("text", ["today", "2024", "2024-13-01", "01.05.2024", "2024-05-01T25:00", ""])
def test_other_texts_are_no_dates(text):
    with pytest.raises(ValueError):  # noqa: PT011
        parse_date(text)


def test_dates_in_files(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id,time,x\n1,2024-05-02,2\n1,2024-05-01T23:00:00Z,1\n2,2024-05-01,3\n")
    found = read(path, Columns(label=None, unit="min"))
    assert found.sequences.times.tolist() == [0, 60, 0]
    assert found.sequences.values.ravel().tolist() == [1, 2, 3]
    path.write_text("id,time,x\n1,2024-05-02,2\n1,7,1\n")
    with pytest.raises(ValueError, match=r"x.csv, line 3: column `time` must not hold a number after a date"):
        read(path, Columns(label=None))
    path = tmp_path / "x.parquet"
    frame(DATES.tz_localize("Europe/Berlin")).to_parquet(path)
    assert read(path, Columns(label=None, unit="h")).sequences.times.tolist() == [0, 23, 0]
