"""What is predicted for each row, options, and models that cannot be streamed."""

import json

import numpy as np
import pytest

from cli.shell import QUICK, done, refused
from cli.stream.streams import as_json, parsed, probabilities, streamed
from seq2tens import estimators
from seq2tens.data import load_dataset


def test_the_last_row_of_a_sequence_gives_what_predict_gives(model, rows, tmp_path):
    (tmp_path / "rows.csv").write_text(rows)
    done("predict", model, tmp_path / "rows.csv", "--out", tmp_path / "p.csv")
    expected = parsed((tmp_path / "p.csv").read_text())
    found = parsed(streamed(model, rows))
    assert [int(row["row"]) for row in found] == list(range(1, len(parsed(rows)) + 1))
    assert [row["id"] for row in found] == [row["id"] for row in parsed(rows)]
    last = {row["id"]: row for row in found}
    assert list(last) == [row["id"] for row in expected]
    assert [row["prediction"] for row in last.values()] == [row["prediction"] for row in expected]
    np.testing.assert_allclose(probabilities(last.values()), probabilities(expected), rtol=1e-4)


def test_is_the_stream_of_the_library(model, rows):
    stream = estimators.load(model).stream()
    first = [row for row in parsed(rows) if row["id"] == "s0"]
    values = [
        [float(row[name]) if row[name] not in ("", "NA") else np.nan for name in ("x", "y")] for row in first
    ]
    expected = [
        stream.push([value], [float(row["time"])])[0].tolist()
        for value, row in zip(values, first, strict=True)
    ]
    assert probabilities(parsed(streamed(model, rows)))[: len(first)] == expected


def test_lines_of_json(model, rows):
    text = as_json(rows, lambda row, values: {"id": row["id"], "time": float(row["time"]), **values})
    found = [json.loads(line) for line in streamed(model, text, "--format", "jsonl").splitlines()]
    expected = parsed(streamed(model, rows))
    assert [list(row["probabilities"].values()) for row in found] == probabilities(expected)
    for row, other in zip(found, expected, strict=True):
        assert (str(row["row"]), row["id"], row["prediction"]) == (
            other["row"],
            other["id"],
            other["prediction"],
        )


def test_channels_without_names(unnamed):
    values = load_dataset("JapaneseVowels").test.sequences[0].values
    header = ",".join(f"c{i}" for i in range(values.shape[1]))
    lines = [",".join(map(str, row)) for row in values.tolist()]
    expected = parsed(streamed(unnamed, "\n".join([header, *lines])))
    assert "id" not in expected[0]
    for shape in (list, lambda row: {"values": row}):
        text = "\n".join(json.dumps(shape(row)) for row in values.tolist())
        found = [json.loads(line) for line in streamed(unnamed, text, "--format", "jsonl").splitlines()]
        assert [list(row["probabilities"].values()) for row in found] == probabilities(expected)


def test_every_nth_row_of_a_sequence(model, rows):
    every = parsed(streamed(model, rows))
    found = parsed(streamed(model, rows, "--every", 3))
    position, expected = {}, []
    for row in every:
        position[row["id"]] = position.get(row["id"], 0) + 1
        if position[row["id"]] % 3 == 0:
            expected.append(row)
    assert [row["row"] for row in found] == [row["row"] for row in expected]
    np.testing.assert_allclose(probabilities(found), probabilities(expected), rtol=1e-5)


def test_wrong_options(model, train, tmp_path):
    for options, message in [
        (["--format", "xml"], "`--format` must be one of 'csv', 'jsonl', got 'xml'"),
        (["--every", 0], "`--every` must be at least 1, got 0"),
        (["--save-every", -1], "`--save-every` must be at least 1, got -1"),
        (["--on-error", "ask"], "`--on-error` must be one of 'stop', 'skip', got 'ask'"),
        (["--length", 0], "`--length` must be at least 1, got 0"),
        (["--out", tmp_path], "`--out` must be a file, got the folder"),
        (["--state", tmp_path / "no" / "state"], "`--state` must be in an existing folder"),
    ]:
        assert refused("stream", model, *options).startswith(message)
    assert "without model.json" in refused("stream", tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scaling", "channel"], "`--length` must be given for a network that sees the time"),
        (
            ["--set", "time_embedding=False"],
            "needs a model that does not standardise each sequence by itself",
        ),
    ],
)
def test_models_that_cannot_be_streamed(train, tmp_path, options, message):
    quick = [
        "--epochs",
        1,
        "--set",
        "width=4",
        "--set",
        "fcn_width=4",
        "--set",
        "depth=1",
        "--progress",
        "silent",
    ]
    done("fit", train, "--out", tmp_path / "model", *quick, *options)
    assert message in refused("stream", tmp_path / "model")


def test_all_that_stands_in_the_way_of_a_stream_is_told_at_once(train, tmp_path):
    done("fit", train, "--out", tmp_path / "model", *QUICK)
    sentence = refused("stream", tmp_path / "model")
    assert sentence.startswith("`seq2tens stream` needs a model that does not standardise each sequence")
    assert "; and `--length` must be given for a network that sees the time of a step" in sentence
    assert sentence.endswith(
        "; `seq2tens fit DATA --scaling channel --set time_embedding=False --out DIR` trains a network that "
        "can be streamed"
    )


def test_random_features_cannot_be_streamed(train, tmp_path):
    done("fit", train, "--out", tmp_path / "model", "--model", "random-ls2t")
    assert "needs a network, which can be fed step by step" in refused("stream", tmp_path / "model")
