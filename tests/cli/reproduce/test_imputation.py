"""`seq2tens reproduce imputation`."""

import pytest

from cli.shell import done, refused, run
from experiments.imputation.few_gaps import write_gaps
from seq2tens.experiments import imputation
from seq2tens.experiments.imputation.models import MODELS, SETTINGS
from seq2tens.experiments.imputation.table import TABLE, is_trained

VERB = ("reproduce", "imputation")


def test_help_has_every_model_and_data_set():
    text = " ".join(done(*VERB, "--help").split())
    assert f" {', '.join(MODELS)} " in text
    assert [name for name in MODELS if not is_trained(name)] == ["mean", "forward", "data-mean"]
    assert all(name in text for name in SETTINGS)
    assert "\n  imputation  " in done("reproduce", "--help")


def test_what_would_run_is_listed_without_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ["--dataset", "hmnist,sprites", "--models", "mean,gp-vae", "--seeds", 2, "--epochs", 5]
    assert done(*VERB, *options, "--dry-run") == (
        "to run    hmnist mean\n"
        "to run    hmnist gp-vae (seed 0, 5 epochs)\n"
        "to run    sprites mean\n"
        "to run    sprites gp-vae (seed 0, 5 epochs)\n"
        "to run    hmnist gp-vae (seed 1, 5 epochs)\n"
        "to run    sprites gp-vae (seed 1, 5 epochs)\n"
        "6 cells, 0 finished, 6 to run\n"
        f"{imputation.EXPERIMENT.cost}\n{imputation.EXPERIMENT.expected}\n"
    )
    assert list(tmp_path.iterdir()) == []


REFUSALS = {
    "`--dataset` must be one of 'hmnist', 'sprites', 'sprites-conv256', ": ["--dataset", "mnist"],
    "`--models` must be one of 'mean', 'forward', 'vae', ": ["--models", "lstm"],
    "`--seeds` must be at least 1, got 0": ["--seeds", 0],
    "`--epochs` must be at least 1, got 0": ["--epochs", 0],
    "`--limit` must be at least 1, got 0": ["--limit", 0],
    "`--workers` must be at least 1, got 0": ["--workers", 0],
    "`--data` must be a folder that exists, got 'nowhere'": ["--data", "nowhere"],
    "`--data` must hold train-images-idx3-ubyte.gz, got ": ["--data", "."],
    "`--out` must be a file, got the folder .": ["--out", "."],
}


@pytest.mark.parametrize(("sentence", "options"), REFUSALS.items(), ids=lambda value: str(value)[:40])
def test_refusals(sentence, options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEQ2TENS_DATA", raising=False)
    assert refused(*VERB, "--out", "i.csv", *options).startswith(sentence)
    assert not (tmp_path / "i.csv").exists()


@pytest.mark.slow
def test_cells_are_run_once_and_leave_their_pictures(tmp_path):
    data, table = write_gaps(tmp_path / "data"), tmp_path / "out" / "i.csv"
    command = [*VERB, "--dataset", "hmnist", "--models", "mean,gp-vae", "--seeds", 1, "--epochs", 1]
    command += ["--limit", 4, "--data", data, "--out", table, "--threads", 1]
    shown = run(*command)
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout == f"2 cells added to {table}\n"
    assert "hmnist gp-vae (seed 0, 1 epochs, 4 sequences): NLL " in shown.stderr
    mean, network = TABLE.read(table)
    assert (mean.model, network.model, network.epochs, network.n_train) == ("mean", "gp-vae", 1, 4)
    kept = sorted(str(path.relative_to(table.parent)) for path in table.parent.rglob("*.???"))
    wanted = [f"curves/imputation/{network.key}{end}.csv" for end in ("", "-calibration")]
    wanted += [f"figures/imputation/{row.key}.png" for row in (mean, network)] + ["i.csv"]
    assert [path for path in kept if not path.startswith(".")] == sorted(wanted)
    assert run(*command).stdout == f"0 cells added to {table}\n"
