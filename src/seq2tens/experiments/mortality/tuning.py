"""The search for settings: random draws, kept in an Optuna journal; each is a cell like any other.

What a trial draws depends on its model and number alone. The runner locks, resumes and repeats trials as it
does with all cells, so several machines may share a search, and one that is killed is run again.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from filelock import FileLock
from jaxtyping import Float

from seq2tens import _checks as check
from seq2tens.experiments.core.runner import Summary
from seq2tens.experiments.mortality.models import MODELS, written
from seq2tens.experiments.mortality.table import EPOCHS, MEASURES, TABLE, MortalityCell, MortalityRow

TRIALS = 20


class SearchResult(NamedTuple):
    """The best settings of each model whose search is finished, and what became of its cells."""

    settings: dict[str, str]
    summary: Summary


def search(
    models: Sequence[str],
    results: str | Path,
    journal: str | Path,
    run: Callable[[Sequence[MortalityCell], str | Path], Summary],
    *,
    n_trials: int = TRIALS,
    epochs: int = EPOCHS,
) -> SearchResult:
    """Run the trials that are missing, and choose; `run(cells, results)` is how cells are run."""
    cells = trials(models, journal, n_trials=n_trials, epochs=epochs)
    summary = run(cells, results)
    rows = TABLE.read(results) if Path(results).exists() else []
    record(cells, rows, journal)
    chosen = {name: choose([cell for cell in cells if cell.model == name], rows) for name in models}
    return SearchResult(
        {name: settings for name, settings in chosen.items() if settings is not None}, summary
    )


def trials(
    models: Sequence[str], journal: str | Path | None, *, n_trials: int = TRIALS, epochs: int = EPOCHS
) -> list[MortalityCell]:
    """The cells of a search; trials that the journal lacks are drawn and written to it.

    Args:
        models: which to search settings for.
        journal: file of the search, made if it does not exist; None draws the same without a file.
        n_trials: for each model.
        epochs: at most so many in each trial.
    """
    check.positive_int("trials", n_trials)
    plans = {name: _plan(_study(name, journal, epochs), name, journal, n_trials) for name in models}
    return [_cell(name, plans[name][i].params, epochs) for i in range(n_trials) for name in models]


def record(cells: Iterable[MortalityCell], rows: Iterable[MortalityRow], journal: str | Path) -> None:
    """Tell the journal how finished trials went."""
    done = {row.key: row for row in rows}
    for name, epochs in dict.fromkeys((cell.model, cell.epoch_limit) for cell in cells):
        study = _study(name, journal, epochs)
        for trial in study.get_trials(deepcopy=False):
            row = done.get(_cell(name, trial.params, epochs).key) if _is_whole(trial, name) else None
            if row is not None and not trial.state.is_finished():
                study.tell(trial.number, validation_measures(row), skip_if_finished=True)


def choose(cells: Iterable[MortalityCell], rows: Iterable[MortalityRow]) -> str | None:
    """The best settings of a model's trials, by the sum of z-scores; None while trials are missing."""
    done = {row.key: row for row in rows}
    trials = [done.get(cell.key) for cell in dict.fromkeys(cells)]
    finished = [row for row in trials if row is not None]
    if not finished or len(finished) < len(trials):
        return None
    scores = composite(np.array([validation_measures(row) for row in finished]))
    return finished[int(scores.argmax())].settings


def composite(measures: Float[np.ndarray, "trials measures"]) -> Float[np.ndarray, " trials"]:
    """The sum of z-scores over measures; one in which trials do not differ says nothing."""
    spread = measures.std(axis=0)
    return ((measures - measures.mean(axis=0)) / np.where(spread > 0, spread, 1)).sum(axis=1)


def validation_measures(row: MortalityRow) -> list[float]:
    """Those that trials are compared by."""
    return [getattr(row, f"validation_{name}") for name in MEASURES]


def _cell(model: str, settings: dict[str, Any], epochs: int) -> MortalityCell:
    return MortalityCell("mortality", model, written(settings), 0, "trial", epochs)


def _optuna() -> Any:
    try:
        return importlib.import_module("optuna")
    except ImportError as error:
        raise ImportError("a search for settings needs optuna: pip install 'seq2tens[hpo]'") from error


def _study(model: str, journal: str | Path | None, epochs: int) -> Any:
    optuna = _optuna()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = None
    if journal is not None:
        Path(journal).parent.mkdir(parents=True, exist_ok=True)
        backend = optuna.storages.journal.JournalFileBackend(str(journal))
        storage = optuna.storages.JournalStorage(backend)
    return optuna.create_study(
        storage=storage,
        study_name=f"mortality {model}" + ("" if epochs == EPOCHS else f", at most {epochs} epochs"),
        directions=["maximize"] * len(MEASURES),
        load_if_exists=True,
    )


def _plan(study: Any, model: str, journal: str | Path | None, n_trials: int) -> list[Any]:
    """The first trials of a study, drawn where there are too few."""
    if journal is None:
        return _draw(study, model, n_trials)
    path = Path(journal)
    with FileLock(path.with_name(f".{path.name}.plan")):
        return _draw(study, model, n_trials)


def _draw(study: Any, model: str, n_trials: int) -> list[Any]:
    optuna = _optuna()
    space = {
        name: optuna.distributions.CategoricalDistribution(choices)
        for name, choices in MODELS[model].space.items()
    }
    while len(whole := _whole(study, model)) < n_trials:
        # Whoever draws a trial draws the same.
        study.sampler = optuna.samplers.RandomSampler(
            seed=_seed(model, len(study.get_trials(deepcopy=False)))
        )
        study.ask(fixed_distributions=space)
    return whole[:n_trials]


def _whole(study: Any, model: str) -> list[Any]:
    """Trials with all settings: one may have been killed while it was drawn."""
    return [trial for trial in study.get_trials(deepcopy=False) if _is_whole(trial, model)]


def _is_whole(trial: Any, model: str) -> bool:
    return trial.params.keys() == MODELS[model].space.keys()


def _seed(model: str, number: int) -> int:
    mixed = np.random.SeedSequence([*model.encode(), number])
    return int(mixed.generate_state(1)[0])
