"""`seq2tens reproduce mortality`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from seq2tens.cli._shell import note, refusing
from seq2tens.cli.reproduce import _runs
from seq2tens.cli.reproduce._runs import OPTIONS, DryRun, Out, Progress, Ray, Scratch, Threads, Workers

if TYPE_CHECKING:  # importing it takes seconds
    from seq2tens.experiments import Summary

NAMES = OPTIONS | {"trials": "--trials", "epochs": "--epochs", "journal": "--journal"}
Models = Annotated[
    list[str] | None,
    typer.Option("--models", metavar="A,B,…", help="Which models, see above; repeatable. [default: all]"),
]
Seeds = Annotated[
    int, typer.Option("--seeds", metavar="N", help="Final runs of each model: seeds 0 to N - 1.")
]
BestPublished = Annotated[
    bool,
    typer.Option(
        "--best-published",
        help="No search: take the settings that the paper found, for the baselines those of the library.",
    ),
]
Trials = Annotated[int, typer.Option("--trials", metavar="N", help="Settings tried for each model.")]
Epochs = Annotated[
    int,
    typer.Option(
        "--epochs", metavar="N", help="At most so many. Fewer than 200 make other cells, told as cut short."
    ),
]
Journal = Annotated[
    Path | None,
    typer.Option(
        "--journal",
        metavar="FILE",
        help="The search, as an Optuna journal. [default: the table's name with .journal]",
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="DIR", help="Folder with the stays in physionet2012/. [default: SEQ2TENS_DATA]"
    ),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out stays that cannot be read, and name them on stderr.")
]


def mortality(
    models: Models = None,
    seeds: Seeds = 5,
    best_published: BestPublished = False,
    trials: Trials = 20,
    epochs: Epochs = 200,
    workers: Workers = None,
    threads: Threads = None,
    ray: Ray = None,
    out: Out = Path("results/mortality.csv"),
    journal: Journal = None,
    data: Data = None,
    skip_bad: SkipBad = False,
    scratch: Scratch = None,
    progress: Progress = "auto",
    dry_run: DryRun = False,
) -> None:
    """Run the paper's mortality experiment: who of 12,000 patients of intensive care died in hospital.

    For each model settings are drawn at random and trained once each; those with the largest sum of z-scores
    of validation accuracy, AUPRC and AUROC are trained again from every seed, and only these final runs are
    tested. With --best-published there is no search. Training is the paper's: as many deaths as survivals in
    each batch, at most 200 epochs, an end after 50 without a better validation AUPRC, whose weights are kept.

    Every training is a cell of a table. A row is added to it as soon as a cell is finished, and cells that
    are in it are not run again: the same command goes on after Ctrl-C, a crash or a reboot, a network from
    where its training was. Runs on several machines share a search if they share --out, --journal and
    --scratch.

    Models: fcn-ls2t and fcn, of which the paper tells the settings, and the baselines

    \b
      gru-simple, gru-d, phased-lstm, ip-nets, transformer, seft, latent-ode

    Examples:

    \b
      seq2tens reproduce mortality --best-published --models fcn-ls2t,fcn --seeds 1 --data archive
      seq2tens reproduce mortality --best-published --models gru-d --epochs 5
      seq2tens reproduce mortality --models fcn --workers 4 --dry-run
      seq2tens reproduce mortality --ray 10.0.0.5:6379 --threads 4
    """
    place = Path(f"{str(out).removesuffix('.csv')}.journal") if journal is None else journal
    with refusing(**NAMES):
        plan = _plan(_runs.names(models), seeds, trials, epochs, None if best_published else place)
    if dry_run:
        _list(plan, out)
        return
    _runs.check_places(out, scratch)
    more = {"data": data, "scratch": scratch, "progress": progress, "skip_bad": skip_bad}
    run = partial(_runs.runner(ray, workers, threads), **more)
    with _runs.resumable(out), refusing(OSError, ImportError, **NAMES):
        _check_stays(data, skip_bad)
        summary = _run(plan, out, run)
    _runs.tell(summary, out)


class _Plan(NamedTuple):
    """What was asked for; without a journal there is no search."""

    models: list[str]
    seeds: int
    trials: int
    epochs: int
    journal: Path | None


def _plan(models: list[str] | None, seeds: int, trials: int, epochs: int, journal: Path | None) -> _Plan:
    """Checked, before anything is read."""
    from seq2tens import _checks as check
    from seq2tens.experiments.mortality import choose_models

    for name, number in (("seeds", seeds), ("trials", trials), ("epochs", epochs)):
        check.positive_int(name, number)
    return _Plan(choose_models(models), seeds, trials, epochs, journal)


def _list(plan: _Plan, out: Path) -> None:
    """The final runs, or those of a search; no file is made."""
    from seq2tens.experiments.mortality import EXPERIMENT, finals, named_settings, trials

    if plan.journal is None:
        cells = finals(named_settings(plan.models), seeds=plan.seeds, epochs=plan.epochs)
    else:
        with refusing(OSError, ImportError, **NAMES):
            journal = plan.journal if plan.journal.exists() else None
            cells = trials(plan.models, journal, n_trials=plan.trials, epochs=plan.epochs)
    _runs.list_cells(cells, out, EXPERIMENT)
    if plan.journal is not None:
        typer.echo(f"Each search is followed by {plan.seeds} final runs with the settings that it found.")


def _run(plan: _Plan, out: Path, run: Callable[..., Summary]) -> Summary:
    """The search if there is one, then the final runs."""
    from seq2tens.experiments.mortality import finals, named_settings, search

    if plan.journal is None:
        return run(finals(named_settings(plan.models), seeds=plan.seeds, epochs=plan.epochs), out)
    found = search(plan.models, out, plan.journal, run, n_trials=plan.trials, epochs=plan.epochs)
    for name in plan.models:
        _tell_choice(name, found.settings.get(name))
    return found.summary + run(finals(found.settings, seeds=plan.seeds, epochs=plan.epochs), out)


def _check_stays(data: Path | None, skip_bad: bool) -> None:
    """Refuse data that cannot be read before any cell is started, and say what is left out."""
    from seq2tens.data import ReadError, physionet2012

    with refusing(ReadError, **NAMES):
        stays = physionet2012.load(data, skip_bad=skip_bad)
    for skipped in stays.skipped:
        note(f"skipped {skipped}")
    if len(stays.left_out):
        note(f"left out: {len(stays.left_out)} stays without a time series")


def _tell_choice(model: str, settings: str | None) -> None:
    unfinished = "its search is not finished, so there are no final runs yet; the same command goes on"
    note(f"{model}: {unfinished if settings is None else f'the best settings are {settings}'}")
