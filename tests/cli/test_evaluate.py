"""`seq2tens evaluate`."""

import json

import pytest

from cli.shell import done, refused, table
from seq2tens.data import read
from seq2tens.estimators import load


def test_what_is_printed_written_and_drawn(model, tmp_path):
    data = table(tmp_path / "test.csv", n=8, seed=1)
    picture, numbers = tmp_path / "c.png", tmp_path / "e.json"
    shown = done("evaluate", model, data, "--confusion", picture, "--json", numbers)
    found = json.loads(numbers.read_text())
    test = read(data)
    assert found["accuracy"] == load(model).score(test.sequences, test.labels)
    assert found["sequences"] == 8
    assert [row["label"] for row in found["classes"]] == ["fast, waves", "slow"]
    assert 0 <= found["auroc"] <= 1
    assert f"accuracy           {found['accuracy']:.4f}\n" in shown
    assert f"auprc              {found['auprc']:.4f}\n" in shown
    assert "\nfast, waves  " in shown
    assert shown.endswith(f"saved {numbers}\nsaved {picture}\n")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_one_class_only_has_no_areas(model, tmp_path):
    lines = table(tmp_path / "x.csv").read_text().splitlines()
    slow = [line for line in lines if "fast" not in line]
    (tmp_path / "x.csv").write_text("\n".join(slow))
    shown = done("evaluate", model, tmp_path / "x.csv", "--json", tmp_path / "e.json")
    assert "auroc              –\n" in shown
    assert json.loads((tmp_path / "e.json").read_text())["auprc"] is None


def test_classes_the_model_has_never_seen(model, tmp_path):
    data = table(tmp_path / "x.csv", n=6)
    text = data.read_text()
    data.write_text(text + "t,0,1,2,[odd]\n")
    shown = done(*["evaluate", model, data, "--json", tmp_path / "e.json", "--confusion", tmp_path / "c.svg"])
    assert "\n[odd]  " in shown
    last = json.loads((tmp_path / "e.json").read_text())["classes"][-1]
    assert last == {"label": "[odd]", "support": 1, "precision": None, "recall": 0.0, "f1": 0.0}
    data.write_text("id,time,x,y,label\nt,0,1,2,odd\n")
    assert refused("evaluate", model, data) == (
        f"the labels of {data} must be classes of the model (fast, waves, slow), got 'odd'; "
        "`--label-column` names another column of a table"
    )


def test_numbers_as_classes_are_the_same_in_every_format(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"id": [0, 0, 1, 1], "time": [0, 1, 0, 1], "x": [1.0, 2, 3, 1], "label": [4, 4, 7, 7]}
    parquet.write_table(arrow.table(columns), tmp_path / "x.parquet")
    quick = ["--epochs", 1, "--progress", "silent", "--model", "fcn", "--set", "width=4"]
    done("fit", tmp_path / "x.parquet", "--out", tmp_path / "m", *quick)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    command = ["evaluate", tmp_path / "m"]
    options = ["--json", tmp_path / "e.json", "--force"]
    outputs = [done(*command, tmp_path / name, *options).splitlines()[:9] for name in ("x.parquet", "x.csv")]
    assert outputs[0] == outputs[1]
    assert [row["label"] for row in json.loads((tmp_path / "e.json").read_text())["classes"]] == [4, 7]


def test_refusals(model, train, tmp_path):
    bare = table(tmp_path / "bare.csv", n=2, labels=False)
    assert refused("evaluate", model, bare) == (
        f"{bare}: must have a column `label`, found id, time, x, y; `--label-column` names another"
    )
    series = tmp_path / "x.ts"
    series.write_text("@classLabel false\n@data\n1,2:3,4\n")
    assert refused("evaluate", model, series) == (
        f"{series} must have labels, got none; `--label-column` names the column of a table"
    )
    assert refused("evaluate", model, train, "--confusion", "c.gif") == (
        "`--confusion` must end in .png or .svg or .pdf, got c.gif"
    )
    assert refused("evaluate", model, train, "--json", tmp_path) == (
        f"`--json` must be a file, got the folder {tmp_path}"
    )
