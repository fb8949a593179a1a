"""`seq2tens reproduce mortality`."""

import numpy as np
import pytest

from cli.shell import done, refused, run
from experiments.mortality.few_stays import few_stays
from seq2tens.experiments import mortality
from seq2tens.experiments.mortality.models import MODELS
from seq2tens.experiments.mortality.table import TABLE
from seq2tens.experiments.mortality.tuning import choose, trials

VERB = ("reproduce", "mortality")
needs_stays = [pytest.mark.data("physionet2012/split.npz"), pytest.mark.slow]


def test_help_has_every_model():
    text = " ".join(done(*VERB, "--help").split())
    ours, baselines = list(MODELS)[:2], list(MODELS)[2:]
    assert f"Models: {' and '.join(ours)}, for which the paper states the settings" in text
    assert f" {', '.join(baselines)} " in text
    assert {MODELS[name].named for name in ours} == {"published"}
    assert {MODELS[name].named for name in baselines} == {"default"}
    assert "\n  mortality  " in done("reproduce", "--help")


def test_what_would_run_is_listed_without_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    listed = done(*VERB, "--best-published", "--models", "fcn,gru-d", "--seeds", 2, "--dry-run")
    assert listed == (
        "to run    fcn (seed 0, settings published, paper)\n"
        "to run    gru-d (seed 0, settings default, paper)\n"
        "to run    fcn (seed 1, settings published, paper)\n"
        "to run    gru-d (seed 1, settings default, paper)\n"
        "4 cells, 0 finished, 4 to run\n"
        f"{mortality.EXPERIMENT.cost}\n{mortality.EXPERIMENT.expected}\n"
    )
    later = done(*VERB, "--best-published", "--models", "fcn", "--seeds", 1, "--split", "later", "--dry-run")
    assert later.splitlines()[4] == "to run    fcn (seed 0, settings published, paper, split 5)"
    masked = done(*VERB, "--best-published", "--models", "fcn", "--recipe", "paper-masked", "--dry-run")
    assert masked.startswith("to run    fcn (seed 0, settings published, paper-masked)")
    searched = done(*VERB, "--models", "fcn", "--dry-run", "--trials", 3, "--seeds", 4).splitlines()
    assert searched[:3] == [f"to run    {cell}" for cell in trials(["fcn"], None, n_trials=3)]
    assert searched[-1] == "Each search is followed by 4 final runs with the settings that it found."
    assert list(tmp_path.iterdir()) == []


REFUSALS = {
    "`--models` must be one of 'fcn-ls2t', 'fcn', ": ["--models", "lstm"],
    "`--seeds` must be at least 1, got 0": ["--seeds", 0],
    "`--recipe` must be one of 'paper', 'paper-masked', got 'fast'": ["--recipe", "fast"],
    "`--split` must be one of 'paper', 'later', got '3'": ["--split", "3"],
    "`--trials` must be at least 1, got 0": ["--trials", 0],
    "`--epochs` must be at least 1, got 0": ["--epochs", 0],
    "`--workers` must be at least 1, got 0": ["--workers", 0],
    "`--data` must be a folder that exists, got 'nowhere'": ["--data", "nowhere"],
    "`--data` must hold physionet_params.txt with packed arrays, or text files in set-a": ["--data", "."],
    "`--out` must be a file, got the folder .": ["--out", "."],
    "`--workers` cannot be combined with `--ray`, where the cores of the cluster decide": [
        *["--workers", 2, "--ray", "127.0.0.1:1"]
    ],
}


@pytest.mark.parametrize(("sentence", "options"), REFUSALS.items(), ids=lambda value: str(value)[:40])
def test_refusals(sentence, options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEQ2TENS_DATA", raising=False)
    assert refused(*VERB, "--best-published", "--out", "m.csv", *options).startswith(sentence)
    assert not (tmp_path / "m.csv").exists()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return few_stays(tmp_path_factory.mktemp("stays"), each=6)


class TestOnFewStays:
    pytestmark = needs_stays

    def options(self, data, table):
        return [*("--data", data), *("--out", table), *("--epochs", 1), *("--threads", 1)]

    def test_published_settings_run_without_a_search(self, data, tmp_path):
        table = tmp_path / "m.csv"
        command = [*VERB, "--best-published", "--models", "fcn", "--seeds", 1, *self.options(data, table)]
        shown = run(*command)
        assert shown.exit_code == 0, shown.stderr
        assert shown.stdout == f"1 cells added to {table}\n"
        (row,) = TABLE.read(table)
        assert (row.model, row.settings, row.epochs, row.epoch_limit) == ("fcn", "published", 1, 1)
        assert "fcn (seed 0, settings published, paper, at most 1 epochs): test accuracy " in shown.stderr
        assert run(*command).stdout == f"0 cells added to {table}\n"
        assert sorted(path.name for path in tmp_path.iterdir() if path.name[0] != ".") == ["m.csv"]

    def test_a_search_then_final_runs(self, data, tmp_path):
        table = tmp_path / "m.csv"
        command = [*VERB, "--models", "gru-simple", "--trials", 2, "--seeds", 2, *self.options(data, table)]
        shown = run(*command, "--progress", "silent")
        assert shown.exit_code == 0, shown.stderr
        assert shown.stdout == f"4 cells added to {table}\n"
        rows = TABLE.read(table)
        cells = trials(["gru-simple"], tmp_path / "m.journal", n_trials=2, epochs=1)
        best = choose(cells, rows)
        assert f"seq2tens: gru-simple: the best settings are {best}\n" in shown.stderr
        assert [row.purpose for row in rows] == ["trial", "trial", "final", "final"]
        assert {row.settings for row in rows[2:]} == {best}
        assert [row.seed for row in rows[2:]] == [0, 1]
        assert run(*command).stdout == f"0 cells added to {table}\n"

    def test_stays_that_cannot_be_read_are_named(self, tmp_path):
        """Text files, one of them with a negative time."""
        data, table = text_stays(tmp_path / "data"), tmp_path / "m.csv"
        command = [*VERB, "--best-published", "--models", "gru-simple", "--seeds", 1]
        assert "line 3" in refused(*command, *self.options(data, table))
        shown = run(*command, *self.options(data, table), "--skip-bad", "--progress", "silent")
        assert shown.exit_code == 0, shown.stderr
        (skipped,) = [line for line in shown.stderr.splitlines() if "skipped" in line]
        assert skipped.startswith("seq2tens: skipped ")
        assert "line 3" in skipped
        assert TABLE.read(table)[0].n_train == 7


def text_stays(folder):
    """Twenty-four made-up stays as the challenge has them; the first one is malformed."""
    home = folder / "physionet2012"
    (home / "set-a").mkdir(parents=True)
    records = [132_600 + i for i in range(24)]
    outcomes = ["RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death"]
    for i, record in enumerate(records):
        lines = ["Time,Parameter,Value", f"00:00,RecordID,{record}", f"00:00,Age,{40 + i}", "00:00,Gender,1"]
        lines += ["00:00,Height,-1", "00:00,ICUType,2", "00:00,Weight,70"]
        lines += [f"{hour:02}:30,HR,{70 + i + hour}" for hour in range(5)]
        (home / "set-a" / f"{record}.txt").write_text("\n".join(lines) + "\n")
        outcomes.append(f"{record},6,1,5,-1,{i % 2}")
    bad = home / "set-a" / f"{records[0]}.txt"
    bad.write_text(bad.read_text().replace("00:00,Age", "-1:00,Age"))
    (home / "Outcomes-a.txt").write_text("\n".join(outcomes) + "\n")
    parts = {name: np.array(records[i * 8 : i * 8 + 8]) for i, name in enumerate(("train", "val", "test"))}
    np.savez(home / "split.npz", **parts)
    return folder
