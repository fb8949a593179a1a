"""The search for settings: random trials in an Optuna journal; each trial is a cell.

The settings of a trial depend only on its model and number. The runner locks, resumes and repeats trials like
all cells, so several machines may share a search, and a trial that was killed is run again.
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
from seq2tens.experiments.mortality.models import MODELS, Domain, LogUniform, written
from seq2tens.experiments.mortality.recipes import MASKED, PAPER
from seq2tens.experiments.mortality.table import EPOCHS, MEASURES, TABLE, MortalityCell, MortalityRow

TRIALS = 20


class SearchResult(NamedTuple):
    """The best settings of each model whose search is finished, and the summary of all cells."""

    settings: dict[str, str]
    summary: Summary


class Study(NamedTuple):
    """A group of trials that are compared with each other."""

    model: str
    epochs: int
    recipe: str

    @property
    def name(self) -> str:
        """The name in the journal; a study of the recipe with masks is named after its model only."""
        published = "" if self.recipe == MASKED else f", {self.recipe}"
        short = "" if self.epochs == EPOCHS else f", at most {self.epochs} epochs"
        return f"mortality {self.model}{published}{short}"

    @property
    def space(self) -> dict[str, Domain]:
        """The search space of each setting."""
        return MODELS[self.model].setups[self.recipe].space

    def cell(self, settings: dict[str, Any]) -> MortalityCell:
        """The cell of a trial with these settings."""
        return MortalityCell("mortality", self.model, written(settings), 0, "trial", self.epochs, self.recipe)

    def is_whole(self, trial: Any) -> bool:
        """Whether a trial has all settings; a process may have been killed while it drew them."""
        return trial.params.keys() == self.space.keys()


def search(
    models: Sequence[str],
    results: str | Path,
    journal: str | Path,
    run: Callable[[Sequence[MortalityCell], str | Path], Summary],
    **options: Any,
) -> SearchResult:
    """Run the missing trials and choose the best settings of each model.

    `run(cells, results)` runs cells; `options` are those of `trials`.
    """
    cells = trials(models, journal, **options)
    summary = run(cells, results)
    rows = TABLE.read(results) if Path(results).exists() else []
    record_trials(cells, rows, journal)
    chosen = {name: choose([cell for cell in cells if cell.model == name], rows) for name in models}
    return SearchResult(
        {name: settings for name, settings in chosen.items() if settings is not None}, summary
    )


def trials(
    models: Sequence[str],
    journal: str | Path | None,
    *,
    n_trials: int = TRIALS,
    epochs: int = EPOCHS,
    recipe: str = PAPER,
) -> list[MortalityCell]:
    """The cells of a search; trials that are not in the journal are drawn and added to it.

    Args:
        models: models to search settings for.
        journal: file of the search, created if it does not exist; None draws the same trials without a file.
        n_trials: number of trials of each model.
        epochs: maximum number of epochs of each trial.
        recipe: as in a cell.
    """
    check.positive_int("trials", n_trials)
    plans = {study: _plan(study, journal, n_trials) for study in (Study(m, epochs, recipe) for m in models)}
    return [study.cell(plan[i].params) for i in range(n_trials) for study, plan in plans.items()]


def record_trials(cells: Iterable[MortalityCell], rows: Iterable[MortalityRow], journal: str | Path) -> None:
    """Write the measures of finished trials to the journal."""
    done = {row.key: row for row in rows}
    for study in dict.fromkeys(Study(cell.model, cell.epoch_limit, cell.recipe) for cell in cells):
        optuna_study = _open(study, journal)
        for trial in optuna_study.get_trials(deepcopy=False):
            row = done.get(study.cell(trial.params).key) if study.is_whole(trial) else None
            if row is not None and not trial.state.is_finished():
                optuna_study.tell(trial.number, validation_measures(row), skip_if_finished=True)


def choose(cells: Iterable[MortalityCell], rows: Iterable[MortalityRow]) -> str | None:
    """The best settings of a model's trials, by the sum of z-scores; None while trials are unfinished."""
    done = {row.key: row for row in rows}
    trials = [done.get(cell.key) for cell in dict.fromkeys(cells)]
    finished = [row for row in trials if row is not None]
    if not finished or len(finished) < len(trials):
        return None
    scores = composite(np.array([validation_measures(row) for row in finished]))
    return finished[int(scores.argmax())].settings


def composite(measures: Float[np.ndarray, "trials measures"]) -> Float[np.ndarray, " trials"]:
    """The sum of z-scores over measures; a measure that is the same for all trials contributes 0."""
    spread = measures.std(axis=0)
    return ((measures - measures.mean(axis=0)) / np.where(spread > 0, spread, 1)).sum(axis=1)


def validation_measures(row: MortalityRow) -> list[float]:
    """The measures by which trials are compared."""
    return [getattr(row, f"validation_{name}") for name in MEASURES]


def _optuna() -> Any:
    try:
        return importlib.import_module("optuna")
    except ImportError as error:
        raise ImportError("a search for settings needs optuna: pip install 'seq2tens[hpo]'") from error


def _open(study: Study, journal: str | Path | None) -> Any:
    optuna = _optuna()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = None
    if journal is not None:
        Path(journal).parent.mkdir(parents=True, exist_ok=True)
        backend = optuna.storages.journal.JournalFileBackend(str(journal))
        storage = optuna.storages.JournalStorage(backend)
    return optuna.create_study(
        storage=storage,
        study_name=study.name,
        directions=["maximize"] * len(MEASURES),
        load_if_exists=True,
    )


def _plan(study: Study, journal: str | Path | None, n_trials: int) -> list[Any]:
    """The first trials of a study; missing ones are drawn."""
    if journal is None:
        return _draw(study, _open(study, None), n_trials)
    path = Path(journal)
    with FileLock(path.with_name(f".{path.name}.plan")):
        return _draw(study, _open(study, journal), n_trials)


def _draw(study: Study, optuna_study: Any, n_trials: int) -> list[Any]:
    optuna = _optuna()
    space = {name: _distribution(domain) for name, domain in study.space.items()}
    while len(whole := [t for t in optuna_study.get_trials(deepcopy=False) if study.is_whole(t)]) < n_trials:
        # The seed depends on model and number only, so every process draws the same trial.
        number = len(optuna_study.get_trials(deepcopy=False))
        optuna_study.sampler = optuna.samplers.RandomSampler(seed=_seed(study.model, number))
        optuna_study.ask(fixed_distributions=space)
    return whole[:n_trials]


def _distribution(domain: Domain) -> Any:
    distributions = _optuna().distributions
    if isinstance(domain, LogUniform):
        return distributions.FloatDistribution(domain.low, domain.high, log=True)
    return distributions.CategoricalDistribution(domain)


def _seed(model: str, number: int) -> int:
    sequence = np.random.SeedSequence([*model.encode(), number])
    return int(sequence.generate_state(1)[0])
