"""Numbers in place of classes: `fit --task regression`, and what the other verbs make of such a model."""

import csv
import io
import json

import numpy as np
import pyarrow.parquet as parquet
import pytest

from cli.shell import done, refused, run
from seq2tens.data import load_dataset, read
from seq2tens.estimators import RandomLS2TRegressor, load
from seq2tens.explaining import explain_features

SMALL = ["--model", "random-ls2t", "--set", "n_blocks=2"]
TOLD = "so this is regression; `--task classification` treats them as classes"


@pytest.fixture(scope="module")
def slopes(tmp_path_factory):
    """A table of noisy lines, labelled with their slopes."""
    rng = np.random.default_rng(0)
    lines = ["id,time,height,label"]
    for i in range(30):
        slope = rng.normal()
        values = slope * np.arange(6) + 0.1 * rng.normal(size=6)
        lines += [f"line{i},{t},{value:.4f},{slope:.3f}" for t, value in enumerate(values)]
    path = tmp_path_factory.mktemp("slopes") / "slopes.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def regressor(slopes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("regressor") / "model"
    shown = done("fit", slopes, "--task", "regression", "--set", "n_blocks=2", "--out", folder)
    assert "training on 30 sequences of 6 steps, 1 channel, targets -" in shown
    return folder


def targets(data):
    return data.labels.astype(float)


def test_as_in_python(slopes, regressor):
    data = read(slopes)
    expected = RandomLS2TRegressor(n_blocks=2, random_state=0).fit(data.sequences, targets(data))
    found = load(regressor)
    assert isinstance(found, RandomLS2TRegressor)
    np.testing.assert_array_equal(found.predict(data.sequences), expected.predict(data.sequences))


def test_the_task_is_guessed_and_told(slopes, tmp_path):
    result = run("fit", slopes, "--set", "n_blocks=2", "--out", tmp_path / "m")
    assert result.exit_code == 0
    told = [line for line in result.stderr.splitlines() if "regression" in line]
    first = read(slopes).labels[0]
    assert told == [f"seq2tens: the labels are numbers such as {float(first):g}, {TOLD}"]
    assert isinstance(load(tmp_path / "m"), RandomLS2TRegressor)


def test_whole_numbers_are_classes_unless_nearly_all_differ(tmp_path):
    path = tmp_path / "x.csv"

    def told(labels):
        rows = [f"{i},{t},{(i * t) % 7},{label}" for i, label in enumerate(labels) for t in range(4)]
        path.write_text("id,time,x,label\n" + "\n".join(rows) + "\n")
        result = run("fit", path, *SMALL, "--force", "--out", tmp_path / "m")
        assert result.exit_code == 0, result.output
        return [line for line in result.stderr.splitlines() if "regression" in line]

    assert told([i % 3 for i in range(24)]) == []
    assert told(range(24)) == [f"seq2tens: the labels are 24 different numbers, {TOLD}"]


def test_predictions_in_every_format(slopes, regressor, tmp_path):
    data = read(slopes)
    expected = load(regressor).predict(data.sequences).tolist()
    rows = [
        dict(zip(("id", "prediction"), pair, strict=True)) for pair in zip(data.ids, expected, strict=True)
    ]
    shown = done("predict", regressor, slopes)
    table = csv.DictReader(io.StringIO(shown))
    assert [{"id": row["id"], "prediction": float(row["prediction"])} for row in table] == rows
    lines = done("predict", regressor, slopes, "--format", "jsonl").splitlines()
    assert [json.loads(line) for line in lines] == rows
    for suffix, form in (("jsonl", []), ("parquet", ["--format", "parquet"])):
        done("predict", regressor, slopes, "--out", tmp_path / f"p.{suffix}", *form)
    assert (tmp_path / "p.jsonl").read_text().splitlines() == lines
    assert parquet.read_table(tmp_path / "p.parquet").to_pylist() == rows
    assert refused("predict", regressor, slopes, "--out", tmp_path / "p.txt") == (
        f"`--out` must end in .csv or .parquet or .jsonl, got {tmp_path / 'p.txt'}"
    )


def test_evaluation(slopes, regressor, tmp_path):
    shown = done(
        *["evaluate", regressor, slopes, "--json", tmp_path / "s.json", "--scatter", tmp_path / "s.png"]
    )
    data, scores = read(slopes), json.loads((tmp_path / "s.json").read_text())
    told = load(regressor).predict(data.sequences)
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean((told - targets(data)) ** 2)))
    assert scores["mae"] == pytest.approx(np.mean(np.abs(told - targets(data))))
    assert scores["r2"] == pytest.approx(load(regressor).score(data.sequences, targets(data)))
    assert scores["r2"] > 0.9
    assert f"rmse               {scores['rmse']:.4f}" in shown
    assert (tmp_path / "s.png").stat().st_size > 5_000
    assert refused("evaluate", regressor, slopes, "--confusion", tmp_path / "c.png") == (
        "`--confusion` is for classifiers, `--scatter` for regressors, got a RandomLS2TRegressor"
    )


def test_a_scatter_plot_of_classes(model, train, tmp_path):
    assert refused("evaluate", model, train, "--scatter", tmp_path / "c.png") == (
        "`--scatter` is for regressors, `--confusion` for classifiers, got a FCNLS2TClassifier"
    )


def test_explanation(slopes, regressor, tmp_path):
    shown = done("explain", regressor, slopes, "--id", "line3", "--out", tmp_path / "why").splitlines()
    data = read(slopes)
    expected = explain_features(load(regressor), data.sequences[3], names=data.channels)
    assert expected.output == pytest.approx(load(regressor).predict(data.sequences[3])[0], rel=1e-4)
    assert shown[:2] == ["target     prediction", f"output     {expected.output:.4f}"]
    assert f"  {expected.features[0].contribution:+.4f}  {expected.features[0]}" in shown
    assert "height" in {channel for feature in expected.features for channel in feature.channels}
    command = ["explain", regressor, slopes, "--id", "line3", "--out", tmp_path / "other"]
    assert refused(*command, "--target", "up") == (
        "`--target` is for classes, but the model predicts numbers, got 'up'"
    )


def test_other_verbs(slopes, regressor):
    assert "regression" in done("info", regressor)
    assert refused("stream", regressor).startswith(
        "`seq2tens stream` needs a classifier that is a network, got RandomLS2TRegressor; `seq2tens fit DATA "
    )


def test_labels_that_are_no_numbers(train, tmp_path):
    assert refused("fit", train, "--task", "regression", "--out", tmp_path / "m") == (
        f"{train} must have a finite number for every sequence, got 'slow'; `--label-column` names another "
        "column of a table, and `--task classification` predicts classes"
    )


def test_a_network_for_numbers(slopes, tmp_path):
    result = run("fit", slopes, "--model", "fcn", "--out", tmp_path / "m")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == (
        "seq2tens: `--model` must be one of random-ls2t for regression, got 'fcn'; "
        "it is a model for classification"
    )


def test_a_real_data_set(tmp_path):
    result = run("fit", "Covid3Month", *SMALL, "--out", tmp_path / "m")
    assert result.exit_code == 0, result.output
    train, test = load_dataset("Covid3Month")
    expected = RandomLS2TRegressor(n_blocks=2, random_state=0).fit(train.sequences, targets(train))
    rows = csv.DictReader(io.StringIO(done("predict", tmp_path / "m", "Covid3Month")))
    assert [float(row["prediction"]) for row in rows] == expected.predict(test.sequences).tolist()
