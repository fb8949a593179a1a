"""What the shell itself does: help, versions, errors of both kinds."""

import subprocess
import sys

import pytest

import seq2tens
from cli.shell import COMMAND, done, refused, run, start
from seq2tens import cli
from seq2tens.estimators import MODELS


def test_help_reads_like_documentation():
    assert done("--help") == done()
    for verb in ("choose", "fit", "predict", "evaluate", "info", "report"):
        assert f"\n  {verb}  " in done("--help")
        text = done(verb, "--help")
        assert "Example" in text
        assert f"\n    seq2tens {verb} " in text
    assert ", ".join(MODELS).replace(", random-ls2t", " or random-ls2t") in done("fit", "--help")


def test_help_loads_nothing_heavy():
    code = "import sys, seq2tens.cli; print({'torch', 'numpy', 'aeon', 'rich'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"


def test_version():
    assert done("--version") == f"{seq2tens.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["walk"], "No such command 'walk'."),
        (["fit"], "Missing argument 'DATA'."),
        (["fit", "x.csv"], "Missing option '--out'."),
    ],
)
def test_usage_errors_are_one_sentence(arguments, sentence):
    assert refused(*arguments) == sentence


def test_unknown_options_and_unreadable_numbers():
    assert "--colour" in refused("fit", "x.csv", "--out", "m", "--colour", "red")
    assert refused("fit", "x.csv", "--out", "m", "--epochs", "many").startswith(
        "Invalid value for '--epochs': "
    )


@pytest.mark.slow
def test_the_installed_command():
    process = start("info", "no-such-data")
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 2
    assert stdout == ""
    assert stderr.startswith("seq2tens: DATA must be a file (.ts, ")
    assert stderr.count("\n") == 1
    assert COMMAND.exists()


def test_errors_of_ours_keep_their_traceback(monkeypatch, train):
    def broken(*_):
        raise ValueError("a mistake of the library")

    monkeypatch.setattr(cli._data, "described", broken)
    with pytest.raises(ValueError, match="a mistake of the library"):
        run("fit", train, "--out", "unused")
