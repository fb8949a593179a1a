"""`seq2tens explain`."""

import pytest

from cli.shell import done, refused, table
from seq2tens.data import Columns, read
from seq2tens.estimators import load
from seq2tens.explaining import explain, explain_features


def test_as_in_python(model, tmp_path):
    data = table(tmp_path / "new.csv", n=5, labels=False, seed=1)
    shown = done("explain", model, data, "--id", "s3", "--out", tmp_path / "why", "--unit", "hours")
    found = read(data, Columns(label=None))
    row = found.ids.tolist().index("s3")
    expected = explain(load(model), found.sequences[row], names=found.channels)
    expected.to_csv(tmp_path / "e.csv")
    written = tmp_path / "why" / "explanation.csv"
    assert written.read_bytes() == (tmp_path / "e.csv").read_bytes()
    assert (tmp_path / "why" / "explanation.png").stat().st_size > 10_000
    lines = shown.splitlines()
    assert lines[:2] == ["class      slow", f"output     {expected.output:.4f}"]
    best = expected.top_pairs(1)[0]
    assert f"  {best.contribution:+.4f}  {best.first:g} before {best.second:g}" in lines
    assert lines[-1] == f"saved explanation.csv and explanation.png in {tmp_path / 'why'}"


def test_the_other_class(model, train, tmp_path):
    out = tmp_path / "why"
    outputs = []
    for target in ("slow", "fast, waves"):
        command = ["explain", model, train, "--id", "s1", "--out", out, "--force", "--target", target]
        lines = done(*command).splitlines()
        assert lines[0] == f"class      {target}"
        outputs.append(float(lines[1].split()[1]))
    assert outputs[0] == -outputs[1]
    assert "no pairs of times: there is one step" in lines


def test_refusals(model, train, tmp_path):
    out = tmp_path / "why"
    assert refused("explain", model, train, "--id", "s99", "--out", out) == (
        f"`--id` must be one of the 12 ids of {train} (s0, s1, s2, …), got 's99'; did you mean 's9'?"
    )
    assert refused("explain", model, train, "--id", "s1", "--out", out, "--target", "quick") == (
        "`--target` must be one of the classes ['fast, waves', 'slow'], got 'quick'"
    )
    assert refused("explain", model, train, "--id", "s1", "--out", train) == (
        f"`--out` must be a folder, got the file {train}"
    )
    assert refused("explain", model, "JapaneseVowels", "--id", "0", "--out", out).startswith(
        "`DATA` must have 2 channels as in `fit`, got 12"
    )
    assert not out.exists()


def test_random_features(train, tmp_path):
    """The features that are told and the rest add up to the output."""
    done("fit", train, "--out", tmp_path / "m", "--model", "random-ls2t", "--set", "n_blocks=2")
    shown = done("explain", tmp_path / "m", train, "--id", "s2", "--out", tmp_path / "why").splitlines()
    found, model = read(train), load(tmp_path / "m")
    expected = explain_features(model, found.sequences[2], names=found.channels)
    assert shown[:2] == ["target     slow", f"output     {expected.output:.4f}"]
    assert f"  {expected.features[0].contribution:+.4f}  {expected.features[0]}" in shown
    rows = (tmp_path / "why" / "explanation.csv").read_text().splitlines()[1:]
    total = sum(float(row.split(",")[0]) for row in rows)
    assert total == pytest.approx(expected.output - expected.baseline_output)
    assert (tmp_path / "why" / "explanation.png").stat().st_size > 10_000
