"""`seq2tens predict`."""

import csv

import numpy as np
import pytest
import torch

from cli.shell import done, refused, table
from seq2tens.data import Columns, read
from seq2tens.estimators import load


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_ids_order_and_probabilities(model, tmp_path):
    data = table(tmp_path / "new.csv", n=5, labels=False, seed=1)
    assert done("predict", model, data, "--out", tmp_path / "p.csv") == f"saved {tmp_path / 'p.csv'}\n"
    header, *body = rows(tmp_path / "p.csv")
    assert header == ["id", "prediction", "probability_fast, waves", "probability_slow"]
    assert [row[0] for row in body] == ["s0", "s1", "s2", "s3", "s4"]
    sequences = read(data, Columns(label=None)).sequences
    classifier = load(model)
    found = np.array([row[2:] for row in body], dtype=float)
    np.testing.assert_array_equal(found, classifier.predict_proba(sequences))
    assert [row[1] for row in body] == classifier.predict(sequences).tolist()


def test_channels_are_found_by_name(model, tmp_path):
    """Labels and other columns are passed over, and channels may stand in any order."""
    for name, options in {"a": {"labels": False}, "b": {"columns": ("y", "x")}}.items():
        done("predict", model, table(tmp_path / "x.csv", n=4, **options), "--out", tmp_path / f"{name}.csv")
    plain = table(tmp_path / "x.csv", n=4, labels=False).read_text().splitlines()
    lines = [line.split(",") for line in plain]
    turned = [[row[3], "comment" if i else "note", row[2], row[1], row[0]] for i, row in enumerate(lines)]
    (tmp_path / "x.csv").write_text("\n".join(map(",".join, turned)))
    done("predict", model, tmp_path / "x.csv", "--out", tmp_path / "c.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "c.csv").read_bytes()
    header, *_ = rows(tmp_path / "b.csv")
    assert header == rows(tmp_path / "a.csv")[0]


def test_columns_can_have_other_names(model, tmp_path):
    text = table(tmp_path / "x.csv", n=4, labels=False).read_text()
    done("predict", model, tmp_path / "x.csv", "--out", tmp_path / "a.csv")
    (tmp_path / "y.csv").write_text(text.replace("id,time,x,y", "who,when,first,second"))
    names = ["--id-column", "who", "--time-column", "when", "--channel-columns", "first, second"]
    done("predict", model, tmp_path / "y.csv", "--out", tmp_path / "b.csv", *names)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_parquet_is_as_good_as_csv(model, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow.csv"), pytest.importorskip("pyarrow.parquet")
    path = table(tmp_path / "x.csv", n=4, labels=False)
    nulls = arrow.ConvertOptions(null_values=["", "NA"])
    parquet.write_table(arrow.read_csv(path, convert_options=nulls), tmp_path / "x.parquet")
    for suffix in ("csv", "parquet"):
        done("predict", model, tmp_path / f"x.{suffix}", "--out", tmp_path / f"from_{suffix}.csv")
    assert (tmp_path / "from_csv.csv").read_bytes() == (tmp_path / "from_parquet.csv").read_bytes()


def test_times_that_the_model_does_not_know(tmp_path):
    steps = "1,2,0:3,4,1:A\n2,0:4,1:b\n"
    (tmp_path / "x.ts").write_text("@classLabel true A b\n@data\n" + steps)
    quick = ["--epochs", 1, "--progress", "silent", "--model", "fcn", "--set", "width=4"]
    done("fit", tmp_path / "x.ts", "--out", tmp_path / "m", *quick)
    long = "id,time,p,q\nu,0,1,3\nu,1,2,4\nu,2,0,1\nv,0,2,4\nv,1,0,1\n"
    (tmp_path / "x.csv").write_text(long)
    shown = done("predict", tmp_path / "m", tmp_path / "x.csv", "--out", tmp_path / "p.csv")
    assert "the model was trained without times, so those of DATA are not used\n" in shown
    done("predict", tmp_path / "m", tmp_path / "x.ts", "--out", tmp_path / "q.csv")
    assert [row[1:] for row in rows(tmp_path / "p.csv")] == [row[1:] for row in rows(tmp_path / "q.csv")]


def test_refusals_leave_old_predictions_alone(model, tmp_path):
    out = tmp_path / "p.csv"
    out.write_text("old")

    def sentence(*arguments):
        told = refused("predict", *arguments, "--out", out, "--force")
        assert out.read_text() == "old"
        assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []
        return told

    data = table(tmp_path / "x.csv", n=2, labels=False)
    assert sentence(model, "JapaneseVowels") == "`DATA` must have 2 channels as in `fit`, got 12"
    assert sentence(tmp_path / "none", data) == (
        f"`DIR` must be the folder of a saved model, got {tmp_path / 'none'}, which does not exist"
    )
    missing = tmp_path / "m.csv"
    missing.write_text("id,time,x\n1,0,1\n")
    assert sentence(model, missing) == (
        f"{missing}: must have a column `y`, found id, time, x; `--channel-columns` names another"
    )
    assert sentence(model, data, "--label-column", "who").startswith(f"{data}: must have a column `who`")
    (tmp_path / "x.npz").write_bytes(b"not a zip")
    assert sentence(model, tmp_path / "x.npz").endswith("must be a zip of arrays as `numpy.savez` writes it")


def test_out_must_be_a_place_for_a_file(model, train, tmp_path):
    assert refused("predict", model, train, "--out", tmp_path) == (
        f"`--out` must be a file, got the folder {tmp_path}"
    )
    nowhere = tmp_path / "no" / "p.csv"
    assert refused("predict", model, train, "--out", nowhere) == (
        f"`--out` must be in an existing folder, got {nowhere}"
    )


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there is such a device here")
def test_models_for_a_device_that_is_not_there(model, train, tmp_path):
    copy = tmp_path / "copy"
    load(model).set_params(device="gpu").save(copy)
    sentence = refused("predict", copy, train, "--out", tmp_path / "p.csv")
    assert sentence.startswith(f"the model in {copy} cannot be used here: ")


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_damaged_models(model, train, tmp_path, name):
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in model.iterdir():
        content = path.read_bytes()
        (copy / path.name).write_bytes(content[: len(content) // 2] if path.name == name else content)
    sentence = refused("predict", copy, train, "--out", tmp_path / "p.csv")
    assert sentence.startswith(f"`DIR` must hold a complete model, but {copy / name} cannot be read: ")
