"""Typing mistakes: refused with what was likely meant, before anything heavy is imported."""

import json
import subprocess
import sys

import pytest

from cli.shell import refused
from seq2tens import plots
from seq2tens.cli import _data, _files
from seq2tens.data import available_datasets
from seq2tens.data.readers import FILES, TABLES

ONE_OF = "`--model` must be one of "
SLIPS = {
    ("fti",): "No such command 'fti'. Did you mean 'fit'?",
    ("fit", "UnitTest", "--out", "m", "--modle", "fcn"): (
        "No such option: --modle (Possible options: --model)"
    ),
    ("fit", "UnitTest", "--out", "m", "--model", "fcn-lst2"): (
        f"{ONE_OF}fcn-ls2t, ls2t, fcn, resnet, random-ls2t, got 'fcn-lst2'; did you mean 'fcn-ls2t'?"
    ),
    ("fit", "UnitTest", "--out", "m", "--task", "regression", "--model", "fcn"): (
        f"{ONE_OF}random-ls2t for regression, got 'fcn'; it is a model for classification"
    ),
    ("fit", "UnitTest", "--out", "m", "--task", "regresion"): (
        "`--task` must be one of 'classification', 'regression', got 'regresion'; did you mean 'regression'?"
    ),
    ("fit", "UnitTest", "--out", "m", "--recipe", "fats"): (
        "`--recipe` must be one of 'fast', 'paper', got 'fats'; did you mean 'fast'?"
    ),
    ("fit", "UnitTest", "--out", "m", "--model", "random-ls2t", "--epochs", "3"): (
        "`--epochs` is not an option of the model random-ls2t, but of fcn-ls2t, ls2t, fcn, resnet"
    ),
    ("fit", "UnitTest", "--out", "m", "--model", "fcn", "--set", "widht=3"): (
        "`--set` must be NAME=VALUE with a setting of fcn (since_observed, devices, num_nodes, width, "
        "dropout, spatial_dropout), got 'widht=3'; did you mean 'width'?"
    ),
    ("fit", "UnitTest", "--out", "m", "--set", "n_block=3", "--task", "regression"): (
        "`--set` must be NAME=VALUE with a setting of random-ls2t (n_blocks, order, penalties, n_jobs), got "
        "'n_block=3'; did you mean 'n_blocks'?"
    ),
    ("fit", "nowhere.csv", "--out", "m"): "No such file or directory: nowhere.csv",
    ("impute", "UnitTest", "--out", "-", "--model", "lnear"): (
        f"{ONE_OF}auto, ls2t, gp-vae, hi-vae, vae, mean, forward, linear, brits, saits, timesnet, "
        "imputeformer, helix, csdi, got 'lnear'; did you mean 'linear'?"
    ),
    ("impute", "UnitTest", "--out", "-", "--encoder", "cov"): (
        "`--encoder` must be one of 'conv', 'bls2t', got 'cov'; did you mean 'conv'?"
    ),
    ("choose", "UnitTest", "--models", "ls2t,fnc"): (
        "`--models` must be one of fcn-ls2t, ls2t, fcn, resnet, random-ls2t, got 'fnc'; did you mean 'fcn'?"
    ),
    ("choose", "UnitTest", "--minutes", "0"): "`--minutes` must be above 0, got 0.0",
    ("choose", "UnitTest", "--folds", "1"): "`--folds` must be at least 2, got 1",
    ("predict", "no-model", "UnitTest"): (
        "`DIR` must be the folder of a saved model, got no-model, which does not exist"
    ),
    ("predict", "no-model", "UnitTest", "--format", "json"): (
        "`--format` must be one of 'csv', 'parquet', 'jsonl', got 'json'; did you mean 'jsonl'?"
    ),
    ("predict", "no-model", "UnitTest", "--out", "p.csv", "--format", "jsonl"): (
        "`--format` must be csv for a file of this name, got jsonl with p.csv"
    ),
    ("stream", "no-model", "--on-error", "skp"): (
        "`--on-error` must be one of 'stop', 'skip', got 'skp'; did you mean 'skip'?"
    ),
}
# Runs the commands of a list in one process, and tells after each what was said and whether torch is there.
ANSWERS = """
import io, json, sys
from contextlib import redirect_stderr
from seq2tens.cli import app
answers = []
for command in json.load(sys.stdin):
    with redirect_stderr(io.StringIO()) as said:
        code = app(command, standalone_mode=False)
    heavy = sorted({"torch", "numpy", "aeon", "matplotlib"} & set(sys.modules))
    answers.append([code, said.getvalue(), heavy])
print(json.dumps(answers))
"""


def test_slips_are_answered_before_anything_heavy_is_imported(tmp_path):
    commands = json.dumps([list(command) for command in SLIPS])
    shown = subprocess.run(
        [sys.executable, "-c", ANSWERS], input=commands, capture_output=True, text=True, cwd=tmp_path
    )
    assert shown.returncode == 0, shown.stderr
    for sentence, answer in zip(SLIPS.values(), json.loads(shown.stdout), strict=True):
        assert answer == [2, f"seq2tens: {sentence}\n", []]


def test_data_sets_and_files_that_were_meant(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.csv").touch()
    assert refused("fit", "JapaneseVowel", "--out", "m").endswith(
        ", got 'JapaneseVowel'; did you mean 'JapaneseVowels'?"
    )
    assert refused("fit", "trian.csv", "--out", "m") == (
        "No such file or directory: trian.csv; did you mean 'train.csv'?"
    )
    (tmp_path / "vowels").mkdir()
    assert refused("predict", "vowel", "UnitTest") == (
        "`DIR` must be the folder of a saved model, got vowel, which does not exist; did you mean 'vowels'?"
    )


@pytest.mark.parametrize(
    ("option", "wrong", "sentence"),
    [
        ("--label-column", "labl", "must have a column `labl`, {}; did you mean `--label-column label`?"),
        ("--id-column", "idd", "must have a column `idd`, {}; did you mean `--id-column id`?"),
        ("--time-column", "when", "must have a column `when`, {}; `--time-column` names another"),
        ("--channel-columns", "x,z", "must have a column `z`, {}; `--channel-columns` names another"),
    ],
)
def test_columns_that_were_meant(train, tmp_path, option, wrong, sentence):
    expected = sentence.format("found id, time, x, y, label")
    assert refused("fit", train, "--out", tmp_path / "m", option, wrong) == f"{train}: {expected}"


def test_curves_of_what_is_not_trained_in_epochs(train, tmp_path):
    command = ["fit", train, "--out", tmp_path / "m", "--model", "random-ls2t"]
    assert refused(*command, "--curves", tmp_path / "c.png") == (
        "`--curves` is for models that are trained in epochs: fcn-ls2t, ls2t, fcn, resnet, "
        "not for random-ls2t"
    )


def test_what_the_shell_knows_by_heart(tmp_path, monkeypatch):
    assert _data.dataset_names() == available_datasets()
    (tmp_path / "tsc").mkdir()
    (tmp_path / "tsc" / "Waves.npz").touch()
    monkeypatch.setenv("SEQ2TENS_DATA", str(tmp_path))
    assert "Waves" in _data.dataset_names()
    assert _data.dataset_names() == available_datasets()
    monkeypatch.setenv("SEQ2TENS_DATA", "nowhere")
    assert refused("fit", "Waves", "--out", "m") == (
        "`SEQ2TENS_DATA` must be a folder that exists, got 'nowhere'"
    )
    assert tuple(FILES) == _data.FILES
    assert tuple(TABLES) == _data.TABLES
    assert _files.PICTURES == plots.SUFFIXES
