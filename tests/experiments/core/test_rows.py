"""The results table."""

import os
import subprocess
import sys
from dataclasses import asdict, field, make_dataclass, replace

import numpy as np
import pytest

from seq2tens._checks import ArgumentError
from seq2tens.experiments import Row, append, read
from seq2tens.experiments.core.rows import RowTable
from seq2tens.experiments.tsc.table import TABLE

ROW = Row(
    key="5c8424f7a33c",
    dataset="LIBRAS",
    model="fcn128",
    seed=0,
    recipe="fast",
    accuracy=0.977778,
    epochs=83,
    lowest_train_loss=4.2e-06,
    parameters=267663,
    fit_seconds=69.93,
    predict_seconds=0.397,
    peak_mib=720.6,
    threads=1,
    n_train=180,
    n_test=180,
    versions="python 3.11.7; torch 2.13.0",
    commit="0d29f27+",
    finished="2026-11-16T03:27:11+00:00",
)


def test_columns():
    """The report and the tables on file depend on them."""
    assert ",".join(TABLE.columns) == (
        "key,dataset,model,seed,recipe,accuracy,epochs,lowest_train_loss,parameters,fit_seconds,predict_seconds,"
        "peak_mib,threads,n_train,n_test,versions,commit,finished"
    )


def test_what_is_added_is_read_again(tmp_path):
    path = tmp_path / "results" / "tsc.csv"
    rows = [ROW, replace(ROW, key="other", epochs=None, parameters=None, commit="", versions='a, "b"')]
    assert TABLE.finished(path) == set()
    assert [append(path, row) for row in rows] == [True, True]
    assert read(path) == rows
    assert TABLE.finished(path) == {"5c8424f7a33c", "other"}


def test_a_cell_is_added_once(tmp_path):
    path = tmp_path / "tsc.csv"
    append(path, ROW)
    assert not append(path, replace(ROW, accuracy=0.5))
    assert read(path) == [ROW]


def test_a_table_from_before_a_column_was_added(tmp_path):
    fields = [("protocol", "str", field(default="")), ("spread", "float | None", field(default=None))]
    later_row = make_dataclass("LaterRow", fields, bases=(Row,), frozen=True, kw_only=True)
    path, later = tmp_path / "tsc.csv", RowTable(later_row)
    before = [ROW, replace(ROW, key="other", versions='a, "b"', epochs=None)]
    for row in before:
        append(path, row)
    old = [later_row(**asdict(row)) for row in before]
    assert later.read(path) == old
    new = later_row(**asdict(replace(ROW, key="new")), protocol="published", spread=0.5)
    assert later.append(path, new)
    assert later.read(path) == [*old, new]
    assert path.read_text().splitlines()[0] == ",".join(later.columns)
    assert path.read_text().splitlines()[1].endswith(f"{ROW.finished},,")
    with pytest.raises(
        ArgumentError, match="line 1: must have known columns only, got also protocol, spread"
    ):
        read(path)


def test_a_table_without_its_last_line_end(tmp_path):
    path = tmp_path / "tsc.csv"
    append(path, ROW)
    path.write_text(path.read_text().rstrip("\n"))
    append(path, replace(ROW, key="other"))
    assert [row.key for row in read(path)] == [ROW.key, "other"]


def test_a_table_from_before_a_column_existed(tmp_path):
    path = tmp_path / "tsc.csv"
    append(path, replace(ROW, lowest_train_loss=None))
    header, line = path.read_text().splitlines()
    path.write_text(header.replace(",lowest_train_loss", "") + "\n" + line.replace("83,,", "83,") + "\n")
    assert read(path) == [replace(ROW, lowest_train_loss=None)]
    append(path, replace(ROW, key="other"))
    assert path.read_text().splitlines()[:2] == [header, line]
    assert read(path)[1].lowest_train_loss == 4.2e-06


def test_a_failed_write_leaves_the_table_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "tsc.csv"
    append(path, ROW)
    before = path.read_bytes()

    def broken(*_):
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(OSError, match="no space left"):
            append(path, replace(ROW, key="other"))
    assert path.read_bytes() == before
    append(path, replace(ROW, key="other"))
    assert len(read(path)) == 2


ADD = """
import sys
from dataclasses import replace
from seq2tens.experiments import append, read
path, name = sys.argv[1:]
(row,) = read(path)[:1]
for i in range(20):
    append(path, replace(row, key=f"{name}{i}"))
"""


@pytest.mark.slow
def test_several_processes_add_to_one_table(tmp_path):
    path = tmp_path / "tsc.csv"
    append(path, ROW)
    processes = [subprocess.Popen([sys.executable, "-c", ADD, path, name]) for name in "ab"]
    assert [process.wait() for process in processes] == [0, 0]
    assert len(TABLE.finished(path)) == 41


HEADER = ",".join(TABLE.columns)
LINE = "k,LIBRAS,dtw,0,-,0.5,,,,1.0,1.0,100.0,1,180,180,v,c,t"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "line 1: must have all columns, got none for key, dataset"),
        (f"{HEADER},colour\n", "line 1: must have known columns only, got also colour"),
        (HEADER.replace(",commit", "") + "\n", "line 1: must have all columns, got none for commit"),
        (
            HEADER.replace("key,dataset", "dataset,key") + "\n",
            "line 1: must have the columns in the order key,",
        ),
        (f"{HEADER}\n{LINE},x\n", "line 2: must have 18 cells like the header, got 19"),
        (f"{HEADER}\n{LINE}\n\n", "line 3: must have 18 cells like the header, got 0"),
        (f"{HEADER}\n{LINE}\n{LINE}\n", "line 3: the cell k must occur once, got it again"),
        (f"{HEADER}\n{LINE.replace('0.5', 'x')}\n", "line 2: column `accuracy` must be a number, got 'x'"),
        (f"{HEADER}\n{LINE.replace('0.5', '2')}\n", r"line 2: `accuracy` must lie in \[0, 1\], got 2.0"),
        (f"{HEADER}\n{LINE.replace('0.5', 'nan')}\n", r"line 2: `accuracy` must lie in \[0, 1\], got nan"),
        (f"{HEADER}\n{LINE.replace('100.0', 'inf')}\n", "line 2: `peak_mib` must be finite and at least 0"),
        (f"{HEADER}\n{LINE.replace('dtw,0', 'dtw,zero')}\n", "line 2: column `seed` must be an integer"),
        (f"{HEADER}\n{LINE.replace('0.5,,', '0.5,1.5,')}\n", "column `epochs` must be an integer or empty"),
        (f'{HEADER}\n{LINE}\n"never closed', "line 3: unexpected end of data"),
    ],
)
def test_malformed_tables(tmp_path, text, sentence):
    path = tmp_path / "tsc.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"^{path}, .*{sentence}"):
        read(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=str(path)):
        append(path, ROW)
    assert path.read_bytes() == before


def test_a_table_that_is_not_text(tmp_path):
    path = tmp_path / "tsc.csv"
    append(path, ROW)
    before = path.read_bytes().replace(b"LIBRAS", b"LIBR\xc4S")
    path.write_bytes(before)
    sentence = f"^{path}, byte {before.index(0xC4)}: must be UTF-8 text, got invalid continuation byte"
    for attempt in (lambda: read(path), lambda: append(path, replace(ROW, key="other"))):
        with pytest.raises(ArgumentError, match=sentence):
            attempt()
    assert path.read_bytes() == before


def refusal(path):
    """Why a table cannot be read, None if it can."""
    try:
        read(path)
    except ArgumentError as error:
        return str(error)


def test_any_flipped_bit_is_another_table_or_one_error(tmp_path):
    append(tmp_path / "tsc.csv", ROW)
    content = (tmp_path / "tsc.csv").read_bytes()
    refusals = []
    for i in np.random.default_rng(0).choice(8 * len(content), 300, replace=False):
        changed, path = bytearray(content), tmp_path / f"{i}.csv"
        changed[i // 8] ^= 1 << i % 8
        path.write_bytes(changed)
        refusals += [(f"{path}, ", found)] if (found := refusal(path)) else []
    assert len(refusals) > 100
    assert all(found.startswith(place) for place, found in refusals)


def test_two_names_of_one_table_have_one_lock(tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "link.csv").symlink_to(tmp_path / "results" / "tsc.csv")
    assert append(tmp_path / "link.csv", ROW)
    assert not append(tmp_path / "results" / "tsc.csv", ROW)
    assert (tmp_path / "link.csv").is_symlink()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["link.csv", "results"]
    assert read(tmp_path / "link.csv") == [ROW]


def test_a_table_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "tsc.csv")
