"""The search for settings."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import optuna
import pytest

from experiments.mortality.few_stays import few_stays
from experiments.mortality.mortality_rows import row
from seq2tens.experiments import run
from seq2tens.experiments.mortality.models import MODELS, LogUniform
from seq2tens.experiments.mortality.table import TABLE
from seq2tens.experiments.mortality.tuning import choose, composite, record_trials, search, trials


def test_trials_are_drawn_from_the_space_and_the_same_everywhere(tmp_path):
    cells = trials(["fcn", "gru-d"], None)
    assert cells == trials(["fcn", "gru-d"], tmp_path / "one.journal")
    assert len(cells) == 40
    assert {cell.purpose for cell in cells} == {"trial"}
    for cell in cells:
        space = MODELS[cell.model].setups[cell.recipe].space
        for name, value in MODELS[cell.model].resolve(cell.recipe, cell.settings).items():
            domain = space[name]
            inside = domain.low <= value <= domain.high if isinstance(domain, LogUniform) else value in domain
            assert inside, name
    assert len({cell.settings for cell in cells if cell.model == "fcn"}) > 15
    assert cells[::2] == trials(["fcn"], None)  # whatever else is searched


def test_a_journal_is_gone_on_with(tmp_path):
    journal = tmp_path / "search.journal"
    few = trials(["fcn"], journal, n_trials=3)
    assert trials(["fcn"], journal, n_trials=8)[:3] == few
    assert trials(["fcn"], journal, n_trials=2) == few[:2]
    short = trials(["fcn"], journal, n_trials=3, epochs=5)  # another search
    assert [cell.settings for cell in short] == [cell.settings for cell in few]
    assert {cell.key for cell in short}.isdisjoint(cell.key for cell in few)


def study(journal):
    backend = optuna.storages.journal.JournalFileBackend(str(journal))
    return optuna.load_study(
        study_name="mortality fcn, paper", storage=optuna.storages.JournalStorage(backend), sampler=None
    )


DRAW = """
import sys
from seq2tens.experiments.mortality.tuning import trials
print(*(cell.key for cell in trials(["fcn"], sys.argv[1], n_trials=6)))
"""


@pytest.mark.slow
def test_machines_that_share_a_journal_draw_the_same_trials(tmp_path):
    journal = tmp_path / "search.journal"
    processes = [
        subprocess.Popen([sys.executable, "-c", DRAW, journal], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    keys = [process.communicate()[0].split() for process in processes]
    assert keys[0] == keys[1] == [cell.key for cell in trials(["fcn"], None, n_trials=6)]
    assert len(study(journal).trials) == 6


def test_a_trial_that_was_killed_while_it_was_drawn_is_passed_over(tmp_path):
    journal = tmp_path / "search.journal"
    trials(["fcn"], journal, n_trials=1)
    study(journal).ask()  # without any setting
    assert len(set(trials(["fcn"], journal, n_trials=3))) == 3
    assert [len(trial.params) for trial in study(journal).trials] == [5, 0, 5, 5]


def test_optuna_is_told_what_finished_trials_gave(tmp_path):
    journal = tmp_path / "search.journal"
    cells = trials(["fcn"], journal, n_trials=3)
    rows = [row(cell, validation_auprc=0.3 + 0.1 * i) for i, cell in enumerate(cells[:2])]
    record_trials(cells, rows, journal)
    record_trials(cells, rows, journal)  # once more does no harm
    told = study(journal).trials
    assert [trial.state.name for trial in told] == ["COMPLETE", "COMPLETE", "RUNNING"]
    assert told[1].values == [0.8, 0.4, 0.85]


def test_settings_are_chosen_by_the_sum_of_z_scores():
    measures = np.array([[0.8, 0.50, 0.85], [0.7, 0.52, 0.86], [0.9, 0.40, 0.80]])
    by_hand = sum((column - column.mean()) / column.std() for column in measures.T)
    np.testing.assert_allclose(composite(measures), by_hand)
    np.testing.assert_allclose(composite(np.ones((4, 3))), np.zeros(4))
    cells = trials(["fcn"], None, n_trials=3)
    names = ("validation_accuracy", "validation_auprc", "validation_auroc")
    rows = [
        row(cell, **dict(zip(names, values, strict=True)))
        for cell, values in zip(cells, measures.tolist(), strict=True)
    ]
    assert choose(cells, rows) == cells[int(by_hand.argmax())].settings
    assert choose(cells, rows[:2]) is None  # as long as one is missing
    tested = [replace(one, test_auprc=1 - i / 2) for i, one in enumerate(rows)]
    assert choose(cells, tested) == choose(cells, rows)


@pytest.mark.data("physionet2012/split.npz")
@pytest.mark.slow
def test_a_search_runs_what_is_missing(tmp_path):
    data, table, journal = few_stays(tmp_path / "data"), tmp_path / "m.csv", tmp_path / "m.journal"
    calls = []

    def some(cells, results):
        """A run that is stopped after the first cell."""
        calls.append(len(cells))
        return run(cells[:1], results, threads=1, data=data, progress="silent")

    def all_of_them(cells, results):
        return run(cells, results, threads=1, data=data, progress="silent")

    first = search(["gru-simple"], table, journal, some, n_trials=2, epochs=1)
    assert first.settings == {}
    assert len(first.summary.done) == 1
    second = search(["gru-simple"], table, journal, all_of_them, n_trials=2, epochs=1)
    assert len(second.summary.done) == 1
    rows = TABLE.read(table)
    assert second.settings == {
        "gru-simple": choose(trials(["gru-simple"], journal, n_trials=2, epochs=1), rows)
    }
    again = search(["gru-simple"], table, journal, all_of_them, n_trials=2, epochs=1)
    assert not again.summary.done
    assert again.settings == second.settings
    assert calls == [2]
