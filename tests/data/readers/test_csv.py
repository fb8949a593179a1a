"""`.csv` files as people have them, by the slow reader and by the fast ones."""

import gzip
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

from data.ragged import assert_same
from seq2tens.data import Columns, ReadError, read, read_csv
from seq2tens.data.readers import _fast_csv, csv

READERS = ("lines", "pyarrow", "polars")


@pytest.fixture(params=READERS)
def reader(request, monkeypatch):
    """Each reader in turn; a fast one must not leave its work to the slow one."""
    if request.param != "lines":
        monkeypatch.setattr(csv, "LARGE_BYTES", 0)
        fast = {request.param: _fast_csv.READERS[request.param]}
        monkeypatch.setattr(_fast_csv, "READERS", fast)
        monkeypatch.setattr(csv, "_read_lines", lambda *_: pytest.fail("the slow reader was asked"))
    return request.param


def write(folder, text, name="x.csv"):
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    return path


EXPECTED = [[1.5, np.nan], [-20, 3]]
TABLES = {
    "commas": "id,time,x,y,label\na,0,1.5,,u\na,1,-2e1,3,u\n",
    "semicolons": "id;time;x;y;label\na;0;1.5;NA;u\na;1;-2e1;3;u\n",
    "decimal commas": "id;time;x;y;label\na;0,0;1,5;N/A;u\na;1,0;-2,0e1;3;u\n",
    "tabs": "id\ttime\tx\ty\tlabel\na\t0\t1.5\tnull\tu\na\t1\t-20\t3\tu\n",
    "bars": "id|time|x|y|label\na|0|1.5|None|u\na|1|-20|3|u\n",
    "mark and case": "\ufeffID,Time,x,y,LABEL\na,0,1.5,?,u\na,1,-20,3,u\n",
    "other order": "y,label,x,id,time\n3,u,-20,a,1\nNaN,u,1.5,a,0\n",
    "carriage returns": "id,time,x,y,label\r\na,0,1.5,,u\r\na,1,-20,3,u\r\n",
}


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
@pytest.mark.parametrize("table", TABLES)
def test_ways_to_write_a_table(tmp_path, reader, table, name):
    path = write(tmp_path, TABLES[table], name)
    found = read(path, Columns(channels=("x", "y")))
    np.testing.assert_array_equal(found.sequences.values, EXPECTED)
    assert found.sequences.times.tolist() == [0, 1]
    assert (found.ids.tolist(), found.labels.tolist()) == (["a"], ["u"])


def test_booleans_words_and_dates(tmp_path, reader):
    text = "id,time,on,gait,x\na,2024-05-01T00:00:00,true,run,1\na,2024-05-01T00:01:00,false, walk ,2\n"
    text += "b,2024-05-01T00:00:00,null,None,3\n"
    columns = Columns(label=None, categories=("gait",))
    found = read(write(tmp_path, text), columns)
    assert found.channels == ("on", "gait=run", "gait=walk", "x")
    nan = np.nan
    np.testing.assert_array_equal(found.sequences.values, [[1, 1, 0, 1], [0, 0, 1, 2], [nan, nan, nan, 3]])
    assert found.sequences.times.tolist() == [0, 60, 0]
    other = read(
        write(tmp_path, "id,time,x,gait,on\na,0,1,swim,1\n", "y.csv"),
        Columns(label=None, encoding=found.encoding),
    )
    assert other.sequences.values.tolist() == [[1, 0, 0, 1]]


TIMES = {
    "numbers": ("0", "2", "0.5", [0, 0.5, 2]),
    "nanoseconds": ("1700000000000000000", "1700000000000000002", "1700000000000000001", [0, 1, 2]),
    "days": ("2024-05-01", "2024-05-03", "2024-05-01 12:00", [0, 43200, 172800]),
    "dates": ("2024-05-01 00:00", "2024-05-01T00:00:02", "2024-05-01 00:00:01.5", [0, 1.5, 2]),
    "zones": ("2024-05-01T00:00:00Z", "2024-05-01T02:00:02+02:00", "2024-05-01T00:00:01Z", [0, 1, 2]),
}


@pytest.mark.parametrize("times", TIMES)
def test_times_of_every_kind(tmp_path, reader, times, monkeypatch):
    *cells, expected = TIMES[times]
    if reader == "polars" and times in ("days", "zones", "dates"):
        monkeypatch.undo()  # it knows one way at a time to write a date, the slow reader all
        monkeypatch.setattr(csv, "LARGE_BYTES", 0)
        monkeypatch.setattr(_fast_csv, "READERS", {"polars": _fast_csv.READERS["polars"]})
    text = "".join(f"a,{cell},{i}\n" for i, cell in enumerate(cells))
    found = read(write(tmp_path, f"id,time,x\n{text}"), Columns(label=None))
    assert found.sequences.times.tolist() == expected
    assert found.sequences.values.ravel().tolist() == [0, 2, 1]


def test_a_guess_is_told(tmp_path, reader):
    path = write(tmp_path, TABLES["decimal commas"])
    assert read(path).notes == ("cells are separated by ';', and decimals written with commas",)
    assert read(path, separator=";", decimal=",").notes == ()
    assert read(write(tmp_path, TABLES["commas"])).notes == ()
    rows = read(write(tmp_path, "id,x\na,2\na,1\n"), Columns(label=None))
    assert rows.notes == ("there is no column `time`, so the steps are in the order of the rows",)
    assert rows.sequences.values.ravel().tolist() == [2, 1]


def test_what_is_told_is_not_guessed(tmp_path, reader):
    path = write(tmp_path, "id;time;x,y\na;0;1,5\n")
    assert read_csv(path, Columns(label=None), separator=";", decimal=",").channels == ("x,y",)


def test_all_readers_agree_to_the_last_bit(tmp_path, reader):
    rng = np.random.default_rng(0)
    n = 2000
    frame = pd.DataFrame(
        {
            "id": rng.integers(0, 30, size=n),
            "time": rng.normal(size=n),
            "x": rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, size=n),
            "y": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        }
    )
    path = tmp_path / "x.csv"
    frame.to_csv(path, index=False)
    expected = {
        key: part.sort_values("time", kind="stable")[["x", "y"]].to_numpy()
        for key, part in frame.groupby("id")
    }
    found = read(path, Columns(label=None))
    for key, values in zip(found.ids, found.sequences, strict=True):
        np.testing.assert_array_equal(values, expected[int(key)])


@pytest.mark.parametrize("library", ["pyarrow", "polars"])
@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("a,1,O.5,u", ", line 3: column `x` must be a number, got 'O.5'"),
        ("a,1,inf,u", ", line 3: column `x` must be a number, got 'inf'"),
        ("a,1,0.5", ", line 3: must have 4 cells like the header, got 3"),
        ("a,1,0.5,v", ", line 3: column `label` must be constant within an id, got 'v' after 'u' for id 'a'"),
        (",1,0.5,u", ", line 3: column `id` must not be empty"),
        (
            "a,,0.5,u",
            ", line 3: column `time` must be a number or a date such as 2024-05-01 13:30:00, got ''",
        ),
        (
            "a,13:30,0.5,u",
            ", line 3: column `time` must be a number or a date such as 2024-05-01 13:30:00, got '13:30'",
        ),
    ],
)
def test_a_failure_of_a_fast_reader_is_explained_by_line(tmp_path, monkeypatch, library, row, reason):
    monkeypatch.setattr(csv, "LARGE_BYTES", 0)
    monkeypatch.setattr(_fast_csv, "READERS", {library: _fast_csv.READERS[library]})
    path = write(tmp_path, f"id,time,x,label\na,0,1,u\n{row}\n")
    with pytest.raises(ReadError) as raised:
        read(path)
    assert str(raised.value) == f"{path}{reason}"


def test_large_files_without_another_library(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "LARGE_BYTES", 0)
    path = write(tmp_path, TABLES["commas"])
    expected = read(path).sequences
    for module in ("pyarrow", "polars"):
        monkeypatch.setitem(sys.modules, module, None)
    assert_same(read(path).sequences, expected)


@pytest.mark.parametrize(
    ("text", "told", "message"),
    [
        (
            "id;x\n1;2\n",
            {"separator": "::"},
            "`separator` must be one character, such as ',', ';' or '\\t', got '::'",
        ),
        ("id;x\n1;2\n", {"decimal": "'"}, "`decimal` must be one of None, '.', ',', got \"'\""),
        ("id,x\n1,2\n", {"decimal": ","}, "`decimal` must differ from `separator`, got ',' for both"),
        ("id;x\n1;2,5\n1;2.5\n", {"decimal": ","}, "{path}, line 3: column `x` must be a number, got '2.5'"),
        ("id;x\n1;1.234,5\n", {}, "{path}, line 2: column `x` must be a number, got '1.234,5'"),
        (
            "id,x\n1,walk\n",
            {},
            "{path}, line 2: column `x` must be a number (`categories` names columns of strings), got 'walk'",
        ),
    ],
)
def test_refusals(tmp_path, text, told, message):
    path = write(tmp_path, text)
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        read(path, Columns(label=None), **told)
    assert str(raised.value) == message.format(path=path)


def test_separators_are_for_text(tmp_path):
    path = tmp_path / "x.parquet"
    pd.DataFrame({"id": [1], "x": [1.0]}).to_parquet(path)
    with pytest.raises(ValueError, match=r"`separator` is for .csv files only, got it with"):
        read(path, separator=";")
    with pytest.raises(
        ValueError, match=r"`decimal` is for .csv, .csv.gz, .parquet files only, got it with 'x.ts'"
    ):
        read("x.ts", decimal=",")


@pytest.mark.parametrize("library", [None, "pyarrow", "polars"])
def test_broken_archives(tmp_path, monkeypatch, library):
    if library:
        monkeypatch.setattr(csv, "LARGE_BYTES", 0)
        monkeypatch.setattr(_fast_csv, "READERS", {library: _fast_csv.READERS[library]})
    path = write(tmp_path, TABLES["commas"], "x.csv.gz")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ReadError) as raised:
        read(path)
    assert str(raised.value).startswith(f"{path}: must be a complete gzip file: Compressed file ended before")
    path.write_bytes(gzip.compress(TABLES["commas"].encode() + bytes(2**27)))
    with pytest.raises(ReadError, match="must not claim more than 200 times its size"):
        read(path)


def test_a_folder_of_series(tmp_path):
    write(tmp_path, "time,x\n1,2\n0,1\n", "a.csv")
    write(tmp_path, "x;time\n3,5;0\n", "b.CSV.gz".lower())
    pd.DataFrame({"time": [0], "x": [4.0]}).to_parquet(tmp_path / "c.parquet")
    (tmp_path / "readme.txt").write_text("no table")
    found = read(tmp_path)
    assert found.ids.tolist() == ["a", "b", "c"]
    assert found.labels is None
    assert found.sequences.lengths.tolist() == [2, 1, 1]
    assert found.sequences.values.ravel().tolist() == [1, 2, 3.5, 4]


def test_folders_of_a_folder_are_labels(tmp_path):
    for name, value in (("run", 1), ("walk", 2)):
        (tmp_path / name).mkdir()
        write(tmp_path / name, f"x\n{value}\n{value}\n", f"{name}.csv")
    found = read(tmp_path)
    assert (found.ids.tolist(), found.labels.tolist()) == (["run", "walk"], ["run", "walk"])
    assert found.sequences.times is None
    write(tmp_path, "x\n1\n", "stray.csv")
    with pytest.raises(
        ReadError, match=r"must hold tables or folders of tables, got both: stray.csv is in no folder"
    ):
        read(tmp_path)


def test_folders_that_are_refused(tmp_path):
    with pytest.raises(ReadError, match="must hold tables, one for each sequence, got none"):
        read(tmp_path)
    write(tmp_path, "x\n1\n", "a.csv")
    write(tmp_path, "y\n1\n", "b.csv")
    with pytest.raises(ReadError, match=r"b.csv: must have the channels \('x',\) of .*a.csv, got \('y',\)"):
        read(tmp_path)
    write(tmp_path, "x,ID\n1,7\n", "b.csv")
    with pytest.raises(
        ReadError, match=r"b.csv: must be one sequence, as every table of a folder, but it has"
    ):
        read(tmp_path)
    write(tmp_path, "x,label\n1,u\n", "b.csv")
    with pytest.raises(ReadError, match=r"b.csv: must have labels if .*a.csv has them"):
        read(tmp_path)


def test_reading_leaves_no_file_open(tmp_path, reader):
    path = write(tmp_path, TABLES["commas"], "x.csv.gz")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        read(path)
