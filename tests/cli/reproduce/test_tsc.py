"""`seq2tens reproduce`."""

import signal
import subprocess

import pytest

from cli.shell import COMMAND, done, refused, run
from experiments.core.toy import archive, environment, is_running, random_cell, wait_for, workers_of
from seq2tens.experiments import MODELS, read, tsc


@pytest.fixture
def data(tmp_path, monkeypatch):
    folder = archive(tmp_path / "data")
    monkeypatch.setenv("SEQ2TENS_DATA", str(folder))
    return folder


def quick(table, *more):
    return [
        *[
            "reproduce",
            "tsc",
            "--models",
            "random-ls2t",
            "--datasets",
            "LIBRAS",
            "--seeds",
            1,
            "--out",
            table,
        ],
        *more,
    ]


def test_help_has_every_data_set_and_model():
    text = " ".join(done("reproduce", "tsc", "--help").split())
    assert f" {', '.join(MODELS)} " in text
    assert [name for name, model in MODELS.items() if model.trained] == [
        name for name in MODELS if "fcn" in name or name in ("ls2t64-3", "resnet")
    ]  # as it says
    assert f"Data sets of the paper: {', '.join(tsc.EXPERIMENT.datasets)}. " in text
    assert "\n    seq2tens reproduce tsc " in done("reproduce", "tsc", "--help")
    assert "\n  tsc  " in done("reproduce", "--help")


@pytest.mark.slow
def test_a_table_is_filled_by_the_same_command(data, tmp_path):
    table = tmp_path / "results" / "t.csv"
    shown = run(*quick(table))
    assert shown.exit_code == 0
    assert shown.stdout == f"1 cells added to {table}\n"
    assert "LIBRAS random-ls2t (seed 0): accuracy " in shown.stderr
    assert [row.key for row in read(table)] == [random_cell().key]
    listed = done(*quick(table, "--datasets", "ECG,LIBRAS", "--dry-run"))
    assert listed == (
        "finished  LIBRAS random-ls2t (seed 0)\n"
        "to run    ECG random-ls2t (seed 0)\n"
        "2 cells, 1 finished, 1 to run\n"
        f"{tsc.EXPERIMENT.cost}\n{tsc.EXPERIMENT.expected}\n"
    )
    assert done(*quick(table)) == f"0 cells added to {table}\n"
    done(*quick(table, "--datasets", "ECG", "--data", data, "--workers", 2, "--progress", "silent"))
    assert [row.dataset for row in read(table)] == ["LIBRAS", "ECG"]


def test_all_that_is_found_is_taken(data, tmp_path):
    shown = run("reproduce", "tsc", "--dry-run", "--models", "dtw", "--out", tmp_path / "t.csv")
    assert shown.exit_code == 0
    assert "\n3 cells, 0 finished, 3 to run\n" in shown.stdout
    (sentence,) = shown.stderr.splitlines()  # named once
    assert sentence.startswith("seq2tens: left out, since not found: the data sets Shapes, DigitShapes, ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


@pytest.mark.slow
def test_cells_that_fail_are_named_at_the_end(data, tmp_path):
    (data / "tsc" / "LIBRAS.npz").write_text("not an archive")
    shown = run(*quick(tmp_path / "t.csv", "--datasets", "ECG", "--progress", "silent"))
    assert shown.exit_code == 1
    assert shown.stdout == f"1 cells added to {tmp_path / 't.csv'}\n"
    (sentence,) = shown.stderr.splitlines()
    assert sentence.startswith("seq2tens: LIBRAS random-ls2t (seed 0) failed: ")
    assert "must be a zip of arrays" in sentence


@pytest.mark.slow
def test_ctrl_c_ends_the_workers_and_the_same_command_goes_on(data, tmp_path):
    table = tmp_path / "t.csv"
    command = [*quick(table, "--datasets", "ECG"), "--workers", 2, "--progress", "silent"]
    process = subprocess.Popen(
        [COMMAND, *map(str, command)], env=environment(data), stderr=subprocess.PIPE, text=True
    )
    workers = wait_for(lambda: len(found := workers_of(process.pid)) == 2 and found)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert said == f"seq2tens: interrupted; finished cells are in {table}, and the same command resumes\n"
    assert not any(map(is_running, workers))
    assert done(*command).endswith(f"2 cells added to {table}\n")


REFUSALS = {
    "`--datasets` must be one of 'Shapes', ": ["--datasets", "Iris"],
    "`--datasets` must be available as tsc/NAME.npz in `--data` or the folder SEQ2TENS_DATA, "
    "got 'PEMS', which is not": ["--datasets", "PEMS"],
    "`--models` must be one of 'ls2t64-3', ": ["--models", "dtw,lstm"],
    "`--seeds` must be at least 1, got 0": ["--seeds", 0],
    "`--recipe` must be one of 'fast', 'paper', 'paper-masked', got 'slow'": ["--recipe", "slow"],
    "`--workers` must be at least 1, got 0": ["--workers", 0],
    "`--threads` must be at least 1, got 0": ["--threads", 0],
    "`--progress` must be one of 'auto', 'bar', 'lines', 'silent', got 'loud'": ["--progress", "loud"],
    "`--data` must be a folder that exists, got 'nowhere'": ["--data", "nowhere"],
    "`--out` must be a file, got the folder .": ["--out", "."],
    "`--workers` cannot be combined with `--ray`, where the cores of the cluster decide": [
        *["--workers", 2, "--ray", "127.0.0.1:1"]
    ],
    "`--ray` must be HOST:PORT or 'auto', got 'cluster'": ["--ray", "cluster"],
    "`--ray` must be that of a running Ray cluster, but nothing answers at 127.0.0.1:1 (": [
        *["--ray", "127.0.0.1:1"]
    ],
}


@pytest.mark.parametrize(("sentence", "options"), REFUSALS.items(), ids=lambda value: str(value)[:40])
def test_refusals(sentence, options, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert refused(*quick(tmp_path / "t.csv", *options)).startswith(sentence)
    assert not (tmp_path / "t.csv").exists()


def test_a_malformed_table_is_refused(data, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("dataset,accuracy\n")
    for more in ([], ["--dry-run"]):
        assert refused(*quick(table, *more)).startswith(
            f"{table}, line 1: must have all columns, got none for "
        )
    assert refused(*quick(table, "--scratch", table)) == f"`--scratch` must be a folder, got the file {table}"
