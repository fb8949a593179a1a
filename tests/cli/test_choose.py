"""`seq2tens choose`."""

import json

import numpy as np
import pytest

from cli.shell import done, refused, run, table
from seq2tens.data import read
from seq2tens.estimators import RandomLS2TClassifier, compare


@pytest.fixture(scope="module")
def waves(tmp_path_factory):
    return table(tmp_path_factory.mktemp("waves") / "waves.csv", n=16)


def test_as_in_python(waves, tmp_path):
    picture, numbers = tmp_path / "scores.png", tmp_path / "scores.json"
    command = ["choose", waves, "--models", "random-ls2t", "--plot", picture, "--json", numbers]
    lines = done(*command).splitlines()
    data = read(waves)
    models = {"random-ls2t": RandomLS2TClassifier(random_state=0)}
    expected = compare(models, data.sequences, data.labels).choice
    assert lines[0].split() == ["model", "score", "±", "folds", "s", "/", "fit"]
    assert lines[1].split()[:4] == [
        "random-ls2t",
        f"{expected.mean:.4f}",
        f"{expected.standard_error:.4f}",
        "3",
    ]
    assert lines[2] == f"use random-ls2t: accuracy {expected.mean:.4f}"
    assert lines[3] == f"  seq2tens fit {waves} --model random-ls2t --out DIR"
    found = json.loads(numbers.read_text())
    assert found["choice"] == "random-ls2t"
    assert found["trials"][0]["scores"] == list(expected.scores)
    assert picture.stat().st_size > 5_000


def test_what_the_time_does_not_suffice_for(waves):
    lines = done("choose", waves, "--models", "random-ls2t,resnet", "--minutes", 0.0001).splitlines()
    assert lines[2].split() == ["resnet", "left", "out:", "no", "time", "was", "left"]
    assert lines[4] == "models were left out; a higher `--minutes` than 0.0001 allows more"


def test_numbers(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{i},{t},{i * 0.1 * t + rng.normal():.3f},{i * 0.1:.2f}" for i in range(20) for t in range(5)]
    path = tmp_path / "x.csv"
    path.write_text("id,time,x,label\n" + "\n".join(rows) + "\n")
    result = run("choose", path)
    assert result.exit_code == 0
    assert "use random-ls2t: R² " in result.stdout
    assert "so this is regression" in result.stderr


def test_refusals(waves):
    assert refused("choose", waves, "--folds", 9) == (
        "`--folds` must be at most the 8 sequences of the rarest class 'fast, waves', got 9"
    )
    assert (
        refused("choose", waves, "--plot", "p.txt") == "`--plot` must end in .png or .svg or .pdf, got p.txt"
    )
    assert refused("choose", waves, "--task", "regression", "--models", "fcn") == (
        "`--models` must be one of random-ls2t for regression, got 'fcn'; it is a model for classification"
    )
