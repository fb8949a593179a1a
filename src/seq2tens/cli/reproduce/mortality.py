"""`seq2tens reproduce mortality`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seq2tens.cli._options import flag, option
from seq2tens.cli._shell import note, refusing
from seq2tens.cli.reproduce import _runs
from seq2tens.cli.reproduce._runs import OPTIONS, Machines, Models, Out, RunOptions

if TYPE_CHECKING:  # importing it takes seconds
    from seq2tens.experiments import Summary
    from seq2tens.experiments.mortality import MortalityCell

NAMES = OPTIONS | {name: f"--{name}" for name in ("trials", "epochs", "journal", "recipe", "split")}
Seeds = Annotated[int, option("N", "Final runs of each model: seeds 0 to N - 1.")]
BestPublished = Annotated[
    bool,
    flag(
        "--best-published",
        "No search: use the settings that the paper found; for the baselines, those of the library.",
    ),
]
Recipe = Annotated[
    str,
    option("paper|paper-masked", "As published, or with masks and with our own inputs and training."),
]
Split = Annotated[str, option("paper|later", "The paper's split, or the five splits of later work.")]
Trials = Annotated[int, option("N", "Number of settings tried for each model.")]
Epochs = Annotated[
    int, option("N", "Maximum number of epochs; fewer than 200 make other cells, reported as shortened.")
]
Journal = Annotated[
    Path | None, option("FILE", "Optuna journal of the search. [default: the table's name with .journal]")
]
Data = Annotated[
    Path | None, option("DIR", "Folder with the stays in physionet2012/. [default: SEQ2TENS_DATA]")
]
SkipBad = Annotated[bool, flag("--skip-bad", "Leave out stays that cannot be read, and name them on stderr.")]


@dataclass(frozen=True)
class Plan:
    """Which cells to run."""

    models: Models = None
    seeds: Seeds = 5
    best_published: BestPublished = False
    trials: Trials = 20
    epochs: Epochs = 200
    recipe: Recipe = "paper"
    split: Split = "paper"

    @property
    def search(self) -> dict[str, Any]:
        """The options of a search, which always uses the paper's split."""
        return {"n_trials": self.trials, "epochs": self.epochs, "recipe": self.recipe}

    def chosen_models(self) -> list[str]:
        """The models to run; all options are checked before anything is read."""
        from seq2tens import _checks as check
        from seq2tens.experiments.mortality import RECIPES, choose_models

        with refusing(**NAMES):
            check.choice("recipe", self.recipe, RECIPES)
            check.choice("split", self.split, ("paper", "later"))
            for name in ("seeds", "trials", "epochs"):
                check.positive_int(name, getattr(self, name))
            return choose_models(_runs.names(self.models))

    def finals(self, settings: dict[str, str]) -> list[MortalityCell]:
        """The cells of the final runs, with the settings of each model."""
        from seq2tens.data import physionet2012
        from seq2tens.experiments.mortality import finals

        splits = physionet2012.LATER_SPLITS if self.split == "later" else (0,)
        return finals(settings, seeds=self.seeds, epochs=self.epochs, recipe=self.recipe, splits=splits)


@dataclass(frozen=True)
class Files:
    """The files to read and write."""

    out: Out = Path("results/mortality.csv")
    journal: Journal = None
    data: Data = None
    skip_bad: SkipBad = False

    @property
    def search(self) -> Path:
        """The journal of the search."""
        return self.journal or Path(f"{str(self.out).removesuffix('.csv')}.journal")


def mortality(plan: Plan, machines: Machines, files: Files, options: RunOptions) -> None:
    """Run the paper's mortality experiment: in-hospital deaths of 12,000 intensive-care patients.

    For each model, random settings are drawn and trained once each. Those with the largest sum of z-scores of
    validation accuracy, AUPRC and AUROC are trained again from every seed, and only these final runs are
    tested. With --best-published there is no search. Training is as published: batches with as many deaths as
    survivals, and early stopping on the validation AUPRC with the best weights kept; FCN-LS2T and FCN see
    zeros in front of every stay. With --recipe paper-masked these are masked, and inputs and training are our
    own.

    Every training run is a cell of a table. Finished cells are added to the table and not run again: the same
    command resumes after Ctrl-C, a crash or a reboot, a network from its last checkpoint. Runs on several
    machines share a search if they share --out, --journal and --scratch.

    Models: fcn-ls2t and fcn, for which the paper states the settings, and the baselines

    \b
      gru-simple, gru-d, phased-lstm, ip-nets, transformer, seft, latent-ode

    Examples:

    \b
      seq2tens reproduce mortality --best-published --models fcn-ls2t,fcn --seeds 1 --data archive
      seq2tens reproduce mortality --best-published --models gru-d --epochs 5
      seq2tens reproduce mortality --best-published --models fcn-ls2t --seeds 1 --split later
      seq2tens reproduce mortality --models fcn --workers 4 --dry-run
      seq2tens reproduce mortality --ray 10.0.0.5:6379 --threads 4
    """
    models = plan.chosen_models()
    if options.dry_run:
        _list(plan, models, files)
        return

    def work(run: Callable[..., Summary]) -> Summary:
        _check_stays(files.data, files.skip_bad)
        return _run(plan, models, files, partial(run, data=files.data, skip_bad=files.skip_bad))

    _runs.execute(work, files.out, machines, options, NAMES)


def _list(plan: Plan, models: list[str], files: Files) -> None:
    """List the final runs, or those of a search, without writing any file."""
    from seq2tens.experiments.mortality import EXPERIMENT, named_settings, trials

    if plan.best_published:
        _runs.list_cells(plan.finals(named_settings(models)), files.out, EXPERIMENT)
        return
    with refusing(OSError, ImportError, **NAMES):
        journal = files.search if files.search.exists() else None
        cells = trials(models, journal, **plan.search)
    _runs.list_cells(cells, files.out, EXPERIMENT)
    typer.echo(f"Each search is followed by {plan.seeds} final runs with the settings that it found.")


def _run(plan: Plan, models: list[str], files: Files, run: Callable[..., Summary]) -> Summary:
    """Run the search if there is one, then the final runs."""
    from seq2tens.experiments.mortality import named_settings, search

    if plan.best_published:
        return run(plan.finals(named_settings(models)), files.out)
    best = search(models, files.out, files.search, run, **plan.search)
    for name in models:
        _note_choice(name, best.settings.get(name))
    return best.summary + run(plan.finals(best.settings), files.out)


def _check_stays(data: Path | None, skip_bad: bool) -> None:
    """Refuse data that cannot be read, before any cell starts, and say which stays are left out."""
    from seq2tens.data import ReadError, physionet2012

    with refusing(ReadError, **NAMES):
        stays = physionet2012.load(data, skip_bad=skip_bad)
    for skipped in stays.skipped:
        note(f"skipped {skipped}")
    if len(stays.left_out):
        note(f"left out: {len(stays.left_out)} stays without a time series")


def _note_choice(model: str, settings: str | None) -> None:
    unfinished = "its search is not finished, so there are no final runs yet; the same command resumes it"
    note(f"{model}: {unfinished if settings is None else f'the best settings are {settings}'}")
