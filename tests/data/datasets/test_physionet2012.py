import numpy as np
import pytest

from data.datasets.stays import COLUMNS, HEADER, described, pack, rows_of, write_sets
from data.ragged import assert_same
from seq2tens.data import ReadError, physionet2012

STAYS = {
    "a": {
        11: described(11, "00:07,HR,73", "00:07,Temp,35.1", "01:30,HR,75.67", weight=80.5, icu=2),
        12: described(12, "00:00,GCS,15", "48:00,MAP,70", "48:00,MAP,80", height=175.3),
    },
    "b": {13: described(13), 14: described(14, "00:10,NIDiasABP,-1", "02:05,Urine,100")},
}
DEATHS = {11: 0, 12: 1, 13: 0, 14: 1}
SPLIT = {"train": [12, 13], "val": [14], "test": [11]}
HR, GCS, MAP, URINE, WEIGHT = (
    physionet2012.CHANNELS.index(n) for n in ("HR", "GCS", "MAP", "Urine", "Weight")
)


@pytest.fixture
def text(tmp_path):
    write_sets(tmp_path / "text", STAYS, DEATHS)
    np.savez(tmp_path / "text" / "split.npz", **SPLIT)
    return tmp_path / "text"


@pytest.fixture
def packed(tmp_path):
    for letter, texts in STAYS.items():
        rows = [row for file in texts.values() for row in rows_of(file)]
        pack(tmp_path / "packed", letter, rows, {record: DEATHS[record] for record in texts})
    np.savez(tmp_path / "packed" / "split.npz", **SPLIT)
    return tmp_path / "packed"


@pytest.fixture(params=["text", "packed"])
def folder(request):
    return request.getfixturevalue(request.param)


def test_parts(folder):
    stays = physionet2012.load(folder)
    assert [part.ids.tolist() for part in (stays.train, stays.validation, stays.test)] == [[12], [14], [11]]
    assert [part.labels.tolist() for part in (stays.train, stays.validation, stays.test)] == [[1], [1], [0]]
    assert stays.left_out.tolist() == [13]
    assert (stays.repeated, stays.skipped) == (1, ())
    assert len(stays.train.channels) == 37


def test_a_row_for_each_time(folder):
    stay = physionet2012.load(folder).test.sequences
    assert stay.values.dtype == np.float32
    np.testing.assert_array_equal(stay.times, [0, 7 / 60, 1.5])
    np.testing.assert_array_equal(stay.values[:, HR], np.float32([np.nan, 73, 75.67]))
    np.testing.assert_array_equal(stay.values[:, WEIGHT], np.float32([80.5, np.nan, np.nan]))
    assert np.isnan(stay.values).sum() == 3 * 37 - 4


def test_the_mean_of_repeated_values(folder):
    stay = physionet2012.load(folder).train.sequences
    np.testing.assert_array_equal(stay.times, [0, 48])
    np.testing.assert_array_equal(stay.values[:, MAP], [np.nan, 75])
    np.testing.assert_array_equal(stay.values[:, GCS], [15, np.nan])


def test_unknown_values_are_not_measurements(folder):
    stay = physionet2012.load(folder).validation.sequences
    np.testing.assert_array_equal(stay.times, [125 / 60])
    assert np.flatnonzero(~np.isnan(stay.values[0])).tolist() == [URINE]


def test_static_features(folder):
    stays = physionet2012.load(folder)
    assert list(physionet2012.STATIC[:4]) == ["Age", "Gender", "Height", "ICUType=1"]
    np.testing.assert_array_equal(stays.test.sequences.static, [[54, 0, np.nan, 0, 1, 0, 0]])
    np.testing.assert_array_equal(stays.train.sequences.static, np.float32([[54, 0, 175.3, 0, 0, 0, 1]]))


def test_an_unknown_icu_is_unknown_in_all_its_columns(tmp_path):
    (tmp_path / "1.txt").write_text(described(1, "00:01,HR,1", icu=-1))
    assert np.isnan(physionet2012.read_text(tmp_path).stays.sequences.static[0, 3:]).all()


def test_both_layouts_are_one(text, packed):
    one, other = physionet2012.load(text), physionet2012.load(packed)
    for part in ("train", "validation", "test"):
        assert_same(getattr(one, part).sequences, getattr(other, part).sequences)
        assert getattr(one, part).labels.dtype == getattr(other, part).labels.dtype


def test_where_the_folder_is(packed, monkeypatch, tmp_path):
    packed.rename(tmp_path / "physionet2012")
    assert len(physionet2012.load(tmp_path).train) == 1
    monkeypatch.setenv("SEQ2TENS_DATA", str(tmp_path))
    assert len(physionet2012.load().train) == 1
    monkeypatch.delenv("SEQ2TENS_DATA")
    with pytest.raises(ValueError, match="`folder` must be given if the variable SEQ2TENS_DATA is not set"):
        physionet2012.load()
    with pytest.raises(ValueError, match="`folder` must be a folder that exists, got '/no/where'"):
        physionet2012.load("/no/where")


def test_labels_only_with_outcomes(text):
    found = physionet2012.read_text(text / "set-b")
    assert found.stays.labels is None
    assert found.stays.ids.tolist() == [14]
    assert found.left_out.tolist() == [13]
    assert physionet2012.read_text(text / "set-b", text / "Outcomes-b.txt").stays.labels.tolist() == [1]


BAD = {
    "negative time": ("-00:10,HR,70", 8, "time must be HH:MM and not negative, got '-00:10'"),
    "no time": ("soon,HR,70", 8, "time must be HH:MM and not negative, got 'soon'"),
    "minutes": ("00:75,HR,70", 8, "time must be HH:MM and not negative, got '00:75'"),
    "time goes back": ("02:00,HR,70\n01:59,HR,71", 9, "time must not go back, got 01:59 after 02:00"),
    "repeated": (
        "02:00,HR,70\n02:00,HR,70.0",
        9,
        "must not repeat a time, parameter and value, got '02:00,HR,70.0' again",
    ),
    "described twice": ("00:00,Age,55", 8, "Age must be given once, got a second value"),
    "described late": ("00:05,Height,170", 8, "Height must be given at 00:00, got a later time"),
    "another record": ("00:00,RecordID,7", 8, "RecordID must be given once, got a second value"),
    "parameter": ("00:10,Pulse,70", 8, "parameter must be one of the challenge's, got 'Pulse'"),
    "not a number": ("00:10,HR,7O", 8, "value must be a finite number, got '7O'"),
    "no value": ("00:10,HR,", 8, "value must be a finite number, got ''"),
    "nan": ("00:10,HR,nan", 8, "value must be a finite number, got 'nan'"),
    "infinite": ("00:10,HR,inf", 8, "value must be a finite number, got 'inf'"),
    "cells": ("00:10,HR", 8, "must have 3 cells (Time,Parameter,Value), got 2"),
}
BAD_FILES = {
    "empty": ("", None, "must not be empty"),
    "no header": (
        "00:00,RecordID,12\n",
        1,
        "must be the header Time,Parameter,Value, got '00:00,RecordID,12'",
    ),
    "no record": (HEADER + "00:00,HR,70\n", None, "must have a line for RecordID, got none"),
    "other name": (described(99, "00:10,HR,70"), 2, "RecordID must match the name of the file, got 99"),
    "icu": (described(12, icu=5), 6, "ICUType must be 1, 2, 3 or 4, got 5"),
    **{name: (described(12, lines), line, reason) for name, (lines, line, reason) in BAD.items()},
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_named_and_can_be_skipped(text, name):
    content, line, reason = BAD_FILES[name]
    path = text / "set-a" / "12.txt"
    path.write_text(content)
    place = str(path) if line is None else f"{path}, line {line}"
    with pytest.raises(ReadError) as raised:
        physionet2012.load(text)
    assert str(raised.value) == f"{place}: {reason}"
    stays = physionet2012.load(text, skip_bad=True)
    assert [str(skipped) for skipped in stays.skipped] == [f"{place}: {reason}"]
    assert (stays.skipped[0].record, stays.skipped[0].line) == (12, line)
    assert (len(stays.train), len(stays.validation), stays.test.ids.tolist()) == (0, 1, [11])


def test_every_file_may_be_bad(text):
    for path in text.glob("set-a/*.txt"):
        path.write_bytes(b"\xff\xfe")
    found = physionet2012.read_text(text / "set-a", skip_bad=True)
    assert (len(found.stays), len(found.skipped)) == (0, 2)
    assert "must be UTF-8 text" in str(found.skipped[0])


def test_a_stay_without_an_outcome(text):
    outcomes = text / "Outcomes-a.txt"
    outcomes.write_text(COLUMNS + "11,6,1,5,-1,0\n")
    with pytest.raises(ReadError, match=r"12.txt: must have an outcome in .*Outcomes-a.txt, got none"):
        physionet2012.load(text)
    assert [skipped.record for skipped in physionet2012.load(text, skip_bad=True).skipped] == [12]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", ": must have a column `RecordID`, found nothing"),
        ("RecordID,SOFA\n", ": must have a column `In-hospital_death`, found RecordID, SOFA"),
        (
            COLUMNS + "11,6,1,5,-1,2\n",
            ", line 2: must have a RecordID and In-hospital_death 0 or 1, got '11' and '2'",
        ),
        (COLUMNS + "11,6\n", ", line 2: must have a RecordID and In-hospital_death 0 or 1, got '11' and ''"),
        (COLUMNS + "11,6,1,5,-1,0\n" * 2, ", line 3: must have one line for RecordID 11, got a second one"),
    ],
)
def test_bad_outcomes(text, content, reason):
    path = text / "Outcomes-a.txt"
    path.write_text(content)
    with pytest.raises(ReadError) as raised:
        physionet2012.load(text, skip_bad=True)
    assert str(raised.value) == f"{path}{reason}"


def message(*arguments, **options):
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        physionet2012.load(*arguments, **options)
    return str(raised.value)


def test_splits(text):
    mine = {"train": [11], "val": [12], "test": [14]}
    assert physionet2012.load(text, split=mine).train.ids.tolist() == [11]
    assert message(text, split={"train": [11]}) == "`split` must have train, val, test, got train"
    twice = "`split` must name every stay once, got 11 more than once"
    assert message(text, split={**mine, "test": [11, 14]}) == twice
    absent = "`split` must name stays of the folder, got 15 in `val`"
    assert message(text, split={**mine, "val": [15]}) == absent
    (text / "split.npz").unlink()
    assert message(text) == (
        "`split` must be a mapping or an .npz file with the record numbers of train, val, test, "
        f"got {str(text / 'split.npz')!r}, which does not exist"
    )


def test_folders_without_data(tmp_path, text):
    assert message(tmp_path, split=SPLIT) == (
        "`folder` must hold physionet_params.txt with packed arrays, or text files in set-a, …, "
        f"got {str(tmp_path)!r}"
    )
    (text / "Outcomes-b.txt").unlink()
    assert message(text) == f"`folder` must hold Outcomes-b.txt next to set-b, got {str(text)!r}"
    (tmp_path / "set-x").mkdir()
    with pytest.raises(ReadError, match=r"must hold a file such as 132539\.txt for each stay, got none"):
        physionet2012.read_text(tmp_path / "set-x")


def test_arrays_without_an_outcome(packed):
    pack(packed, "b", rows_of(STAYS["b"][14]), {13: 0})
    assert message(packed).endswith("physionet_b.npz: `outcomes` must have a row for record 14, got none")


def test_bad_arrays(packed):
    (packed / "physionet_params.txt").write_text("RecordID\nPulse\n")
    assert message(packed).endswith("line 2: must name parameters of the challenge, got 'Pulse'")
    (packed / "physionet_params.txt").write_text("RecordID\n")
    assert message(packed).endswith("physionet_a.npz: `param` must lie in 0..0 (physionet_params.txt), got 1")
    np.savez(packed / "physionet_a.npz", record=np.zeros(1))
    assert message(packed).endswith(
        "physionet_a.npz: must hold the arrays record, minute, param, value, outcomes, found record"
    )
    for path in packed.glob("physionet_?.npz"):
        path.unlink()
    assert message(packed).endswith("must hold the files physionet_a.npz, physionet_b.npz, …, got none")
