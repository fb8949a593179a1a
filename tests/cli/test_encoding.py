"""Terminals that know few characters: what they cannot show is replaced, and never an error."""

import os
import subprocess

import pytest
from typer.testing import CliRunner

from cli.shell import COMMAND, QUICK, done, table
from seq2tens.cli import app

VERBS = ["fit", "predict", "evaluate", "explain", "impute", "stream", "info", "report", "reproduce"]
NARROW = [
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "latin-1:strict"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
]


@pytest.fixture(scope="module")
def greek(tmp_path_factory):
    """A table whose classes and channels have names that are not ASCII, and a model of it."""
    folder = tmp_path_factory.mktemp("greek")
    data = table(folder / "x.csv")
    text = data.read_text().replace('"slow"', '"βραδύς"').replace("id,time,x,y", "id,time,ξ,y")
    data.write_text(text, encoding="utf-8")
    done("fit", data, "--out", folder / "model", *QUICK)
    return folder


def commands(folder, out):
    """Every verb, such that it prints names of the table."""
    model, data = folder / "model", folder / "x.csv"
    return [
        ["evaluate", model, data, "--json", out / "e.json", "--confusion", out / "c.png"],
        ["predict", model, data, "--out", out / "πρόβλεψη.csv"],
        ["explain", model, data, "--id", "s2", "--out", out / "why"],
        ["impute", data, "--model", "mean", "--out", out / "f.csv"],
        ["fit", data, "--out", out / "m", *QUICK],
        ["fit", data, "--out", out / "n", "--epochs", 1, "--progress", "bar", "--set", "width=2"],
        ["info", model],
        ["info", data],
    ]


@pytest.mark.parametrize("charset", ["ascii", "latin-1"])
def test_every_verb_runs(greek, tmp_path, charset):
    runner = CliRunner(charset=charset)
    helps = [["--help"], *([verb, "--help"] for verb in VERBS)]
    for arguments in [*helps, *commands(greek, tmp_path)]:
        result = runner.invoke(app, list(map(str, arguments)), catch_exceptions=False)
        assert result.exit_code == 0, result.output
    refused = runner.invoke(app, ["fit", str(greek / "x.csv"), "--out", "ο", "--model", "δίκτυο"])
    assert refused.exit_code == 2
    assert refused.stderr.startswith("seq2tens: `--model` must be one of")
    assert "βραδύς" in (tmp_path / "πρόβλεψη.csv").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("settings", NARROW, ids=lambda settings: next(iter(settings.values())))
def test_in_a_process_of_its_own(greek, tmp_path, settings):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    for arguments in [["predict", "--help"], commands(greek, tmp_path)[0]]:
        command = [COMMAND, *map(str, arguments)]
        result = subprocess.run(command, env={**clean, **settings}, capture_output=True)
        assert result.returncode == 0, result.stderr
        assert b"Traceback" not in result.stderr
