"""The readers of text: `.ts`, `.arff` and `.csv`."""

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest

from data.ragged import assert_same
from seq2tens.data import Columns, ReadError, read, read_arff, read_csv, read_ts, to_aeon

BUNDLE = Path(importlib.util.find_spec("aeon").origin).parent / "datasets" / "data"
TS_FILES = sorted(path for path in BUNDLE.glob("*/*.ts") if "TimeStamps" not in path.name)


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def lists(labelled):
    return [sequence.tolist() for sequence in labelled.sequences]


@pytest.mark.parametrize("path", TS_FILES, ids=lambda path: path.stem)
def test_ts_agrees_with_aeon(path):
    from aeon.datasets import load_from_ts_file

    X, y = load_from_ts_file(str(path))
    found = read_ts(path)
    mine = to_aeon(found.sequences)
    assert len(mine) == len(X)
    assert all(np.array_equal(one, other) for one, other in zip(mine, X, strict=True))
    # aeon folds labels to lower case.
    labels = found.labels if found.labels.dtype.kind == "f" else np.char.lower(found.labels)
    assert labels.tolist() == y.tolist()


@pytest.mark.parametrize("path", sorted(BUNDLE.glob("*/*.arff")), ids=lambda path: path.stem)
def test_arff_agrees_with_ts(path):
    found, expected = read_arff(path), read_ts(path.with_suffix(".ts"))
    assert found.labels.tolist() == expected.labels.tolist()
    np.testing.assert_array_equal(found.sequences.offsets, expected.sequences.offsets)
    # The two files of a set are rounded differently.
    np.testing.assert_allclose(found.sequences.values, expected.sequences.values, rtol=1e-6, atol=1e-6)


TS = "# about\n@problemName x\n@equalLength false\n@classLabel true A b\n@data\n"


def test_ts_of_unequal_lengths_with_missing_values(tmp_path):
    path = write(tmp_path, "x.ts", TS + "1,?,3:4,5,NaN:A\n\n-1e-2:7:b\n")
    found = read(path)
    assert found.labels.tolist() == ["A", "b"]
    assert found.sequences.lengths.tolist() == [3, 1]
    np.testing.assert_array_equal(found.sequences.values, [[1, 4], [np.nan, 5], [3, np.nan], [-0.01, 7]])


def test_ts_with_targets_or_without_labels(tmp_path):
    target = write(tmp_path, "a.ts", "@targetLabel true\n@data\n1,2:0.5\n")
    assert read_ts(target).labels.tolist() == [0.5]
    bare = write(tmp_path, "b.ts", "@classLabel false\n@data\n1,2:3,4\n")
    assert read_ts(bare).labels is None
    assert lists(read_ts(bare)) == [[[1, 3], [2, 4]]]


ARFF = """% about
@relation 'x y'
@attribute rel relational
@attribute 'att 0' numeric
@attribute att1 numeric
@attribute att2 numeric
@end rel
@attribute class {a,'b c'}
@data
"""


def test_arff_of_unequal_lengths_with_missing_values(tmp_path):
    path = write(tmp_path, "x.arff", ARFF + "'1,?,3\\n4,5,6',a\n% note\n\"7,8,?\\n?,9,?\",'b c'\n")
    found = read(path)
    assert found.labels.tolist() == ["a", "b c"]
    np.testing.assert_array_equal(found.sequences.values, [[1, 4], [np.nan, 5], [3, 6], [7, np.nan], [8, 9]])


def test_plain_arff_is_univariate(tmp_path):
    text = "@RELATION x\n@ATTRIBUTE a REAL\n@ATTRIBUTE b REAL\n@ATTRIBUTE c {1, 2}\n@DATA\n1,2,2\n3,?,1\n"
    found = read_arff(write(tmp_path, "x.arff", text))
    assert lists(found) == [[[1], [2]], [[3]]]
    assert found.labels.tolist() == ["2", "1"]


CSV = "id,time,x,y,label\n"


def test_csv_groups_by_id_and_sorts_by_time(tmp_path):
    rows = "q,2,1,,A\np,0,3,4,B\nq,1.5,?,6,A\n\np,0,7,NaN,B\n"
    found = read(write(tmp_path, "x.csv", CSV + rows))
    assert found.labels.tolist() == ["A", "B"]
    assert found.sequences.lengths.tolist() == [2, 2]
    assert found.ids.tolist() == ["q", "p"]
    assert found.channels == ("x", "y")
    assert found[1].ids.tolist() == ["p"]
    assert found[1].channels == ("x", "y")
    assert found.sequences.times.tolist() == [1.5, 2, 0, 0]
    np.testing.assert_array_equal(found.sequences.values, [[np.nan, 6], [1, np.nan], [3, 4], [7, np.nan]])


def test_csv_columns_have_any_names(tmp_path):
    path = write(tmp_path, "x.csv", '\ufeffstay, hour,"hr, bpm",other\n1,0,60,x\n1,1,61,y\n')
    found = read_csv(path, Columns("stay", "hour", label=None, channels=("hr, bpm",)))
    assert found.labels is None
    assert lists(found) == [[[60], [61]]]


def test_csv_labels_may_be_optional(tmp_path):
    columns = Columns(label_optional=True)
    labelled = read(write(tmp_path, "x.csv", CSV + "1,0,2,3,A\n"), columns)
    assert labelled.labels.tolist() == ["A"]
    assert labelled.channels == ("x", "y")
    bare = read(write(tmp_path, "y.csv", "id,time,x,y\n1,0,2,3\n"), columns)
    assert bare.labels is None
    assert bare.channels == ("x", "y")
    swapped = read(
        write(tmp_path, "z.csv", "y,x,time,id,more\n3,2,0,1,0\n"), Columns(label=None, channels=("x", "y"))
    )
    assert lists(swapped) == lists(bare)


def test_csv_round_trip_is_exact(tmp_path):
    sequences = read_ts(BUNDLE / "JapaneseVowels" / "JapaneseVowels_TRAIN.ts").sequences[:20]
    rows = [
        ",".join(map(repr, [i, step, *row.tolist()]))
        for i, sequence in enumerate(sequences)
        for step, row in enumerate(sequence)
    ]
    header = "id,time," + ",".join(f"c{i}" for i in range(12))
    path = write(tmp_path, "x.csv", "\n".join([header, *rows]))
    assert_same(read(path, Columns(label=None)).sequences, sequences, ("values", "offsets"))


MALFORMED = {
    "a.ts": {
        "@data\n1,2:A\n": ": the header must have `@classLabel` or `@targetLabel`, got neither",
        "no tag\n": ", line 1: the header must be comments (`#`) and tags (`@`), got 'no tag'",
        "@classLabel true\n@data\n": ", line 1: `@classLabel true` must be followed by the labels, got none",
        "@timeStamps maybe\n@data\n": ", line 1: `@timestamps` must be `true` or `false`, got 'maybe'",
        "@timeStamps true\n@data\n": (
            ", line 1: `@timeStamps true` is not supported; a long table (.csv) can hold times"
        ),
        TS.removesuffix("@data\n"): ": must have a line `@data`, got none",
        TS: ": must hold at least one sequence after `@data`, got none",
        TS + "1,x:A\n": ", line 6: channel 0, step 1 must be a finite number or `?`, got 'x'",
        TS + "1,,2:A\n": ", line 6: channel 0, step 1 must be a finite number or `?`, got ''",
        TS + "1,2:3,inf:A\n": ", line 6: channel 1, step 1 must be a finite number or `?`, got 'inf'",
        TS + "1_0:A\n": ", line 6: channel 0, step 0 must be a finite number or `?`, got '1_0'",
        TS + "1,2:3:A\n": ", line 6: channel 1 must have 2 steps like channel 0, got 1",
        TS + "1:A\n1:2:A\n": ", line 7: must have 1 channels like the first sequence, got 2",
        TS + "1,2:a\n": ", line 6: label must be one of A, b, got 'a'",
        TS + "A\n": ", line 6: must have at least one channel before the label",
        TS.replace("false", "true") + "1,2:A\n1:A\n": (
            ", line 7: must have 2 steps (the header says `@equalLength true`), got 1"
        ),
    },
    "a.arff": {
        ARFF.removesuffix("@data\n"): ": must have a line `@data`, got none",
        ARFF: ": must hold at least one sequence after `@data`, got none",
        "@attribute x\n": ", line 1: must be `@attribute name type`, got '@attribute x'",
        "@attribute x real\n@data\n": ": must have attributes for the steps and for the class, got 1",
        "@attribute x real\n@attribute y real\n@data\n": (
            ", line 2: the last attribute must be the class, `{a,b,…}`, got `real`"
        ),
        "relation x\n": ", line 1: the header must be `@` lines and comments (`%`), got 'relation x'",
        ARFF + "1,2,a\n": ", line 10: must be a quoted text of channels, a comma and the label",
        ARFF + "'1,2\\n3,y',a\n": ", line 10: channel 1, step 1 must be a finite number or `?`, got 'y'",
        ARFF + "'1,2,3,4',a\n": ", line 10: must have at most 3 steps as in the header, got 4",
        ARFF + "'1,2,3',c\n": ", line 10: label must be one of a, b c, got 'c'",
        ARFF + "'1',a\n'1\\n2',a\n": ", line 11: must have 1 channels like the first sequence, got 2",
    },
    "a.csv": {
        "": ": must begin with a header, got an empty file",
        CSV: ": must have rows after the header, got none",
        "id,time,x\n": (
            ": must have a column `label`, found id, time, x; `label=None` reads a table without labels"
        ),
        "time,x,label\n": (
            ": must have a column `id`, found time, x, label; `id=None` reads the whole table as one sequence"
        ),
        "id,time,label\n": ": must have a column for a channel, found id, time, label",
        "id,time,x,x,label\n": ": must have distinct column names, got `x` twice",
        CSV + "1,0,1,2,a\n1,abc,1,2,a\n": (
            ", line 3: column `time` must be a number or a date such as 2024-05-01 13:30:00, got 'abc'"
        ),
        CSV + "1,,1,2,a\n": (
            ", line 2: column `time` must be a number or a date such as 2024-05-01 13:30:00, got ''"
        ),
        CSV + "\n\n1,0,1,two,a\n": (
            ", line 4: column `y` must be a number (`categories` names columns of strings), got 'two'"
        ),
        CSV + "1,0,inf,2,a\n": ", line 2: column `x` must be a number, got 'inf'",
        CSV + "1,0,1,2\n": ", line 2: must have 5 cells like the header, got 4",
        CSV + " ,0,1,2,a\n": ", line 2: column `id` must not be empty",
        CSV + "1,0,1,2,\n": ", line 2: column `label` must not be empty",
        CSV + "1,0,1,2,a\n2,0,1,2,b\n1,1,1,2,b\n": (
            ", line 4: column `label` must be constant within an id, got 'b' after 'a' for id '1'"
        ),
        CSV + '1,0,"1,2,a\n': ", line 2: unexpected end of data",
    },
}
CASES = [(name, text, reason) for name, cases in MALFORMED.items() for text, reason in cases.items()]


@pytest.mark.parametrize(("name", "text", "reason"), CASES)
def test_malformed_files_give_file_line_and_reason(tmp_path, name, text, reason):
    path = write(tmp_path, name, text)
    with pytest.raises(ReadError) as raised:
        read(path)
    assert str(raised.value) == f"{path}{reason}"


@pytest.mark.parametrize("name", ["a.ts", "a.arff", "a.csv"])
def test_other_encodings_are_refused(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"# caf\xe9\n")
    with pytest.raises(ReadError) as raised:
        read(path)
    assert str(raised.value) == f"{path}: must be UTF-8 text, invalid continuation byte at byte 5"


def test_reading_leaves_no_file_open(tmp_path):
    path = write(tmp_path, "x.ts", TS + "x:A\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        with pytest.raises(ReadError):
            read(path)
