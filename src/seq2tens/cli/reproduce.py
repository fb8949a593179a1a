"""`seq2tens reproduce`: the paper's experiments."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seq2tens.cli import _models
from seq2tens.cli._shell import INTERRUPTED, UserError, note, refusing

if TYPE_CHECKING:  # importing them takes seconds
    from seq2tens.experiments import Cell, Summary

# Exit code where cells have failed.
FAILED = 1
# What the arguments of the library are called in the shell.
OPTIONS = {
    name: f"--{name}"
    for name in ("datasets", "models", "seeds", "recipe", "workers", "threads", "progress", "data")
} | {"folder": "--data", "address": "--ray"}

Datasets = Annotated[
    list[str] | None,
    typer.Option(
        "--datasets",
        metavar="A,B,…",
        help="Which data sets; repeatable. [default: those of the paper that are found]",
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--models",
        metavar="A,B,…",
        help="Which models, see above; repeatable. [default: all that can be run]",
    ),
]
Seeds = Annotated[
    int,
    typer.Option("--seeds", metavar="N", help="Runs of each model that has randomness: seeds 0 to N - 1."),
]
Recipe = Annotated[
    str,
    typer.Option(
        "--recipe", metavar="paper|fast", help="How networks are trained: as in the paper, or short."
    ),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", metavar="N", help="Cells at a time; they share the threads. [default: 1]"),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        help="Of all workers together; on Ray, of each cell. [default: one for every core; on Ray 1]",
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="HOST:PORT|auto",
        help="Run on this Ray cluster, wherever it has cores. [default: on this machine]",
        show_default=False,
    ),
]
Out = Annotated[
    Path, typer.Option("--out", metavar="FILE", help="The table (.csv) that results are added to.")
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="DIR", help="Folder with the data sets as tsc/NAME.npz. [default: SEQ2TENS_DATA]"
    ),
]
Scratch = Annotated[
    Path | None,
    typer.Option(
        "--scratch",
        metavar="DIR",
        help="Folder for the state of unfinished cells. [default: .seq2tens beside the table]",
    ),
]
Progress = Annotated[
    str,
    typer.Option("--progress", metavar="auto|bar|lines|silent", help="What to show meanwhile, on stderr."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only list what is finished and what would run.")]

reproduce = typer.Typer(
    name="reproduce", no_args_is_help=True, rich_markup_mode=None, context_settings={"max_content_width": 100}
)


@reproduce.callback()
def root() -> None:
    """Run the paper's experiments."""


@reproduce.command()
def tsc(
    datasets: Datasets = None,
    models: Models = None,
    seeds: Seeds = 5,
    recipe: Recipe = "fast",
    workers: Workers = None,
    threads: Threads = None,
    ray: Ray = None,
    out: Out = Path("results/tsc.csv"),
    data: Data = None,
    scratch: Scratch = None,
    progress: Progress = "auto",
    dry_run: DryRun = False,
) -> None:
    """Run the paper's classification experiment.

    Every data set, model and seed is a cell of a table. A row is added to it as soon as a cell is finished,
    and cells that are in it are not run again: the same command goes on after Ctrl-C, a crash or a reboot, a
    network from where its training was. Each cell runs in a process of its own; one that fails is named at
    the end, with exit code 1, and the others go on.

    Data sets of the paper: Shapes, DigitShapes, LIBRAS, PenDigits, ECG, JapaneseVowels, KickvsPunch,
    CMUsubject16, WalkvsRun, Wafer, CharacterTrajectories, AUSLAN, UWave, NetFlow, PEMS, ArabicDigits.

    Models, of which grsf cannot be run; the recipe is for ls2t64-3, resnet and all with fcn in their names:

    \b
      ls2t64-3, fcn64-ls2t64-3, fcn128-ls2t64-3, fcn128, resnet, random-ls2t,
      dtw, muse, mlstm-fcn, multirocket-hydra, grsf, arkernel, smts, lps, mvarf

    Examples:

    \b
      seq2tens reproduce tsc --dry-run
      seq2tens reproduce tsc --datasets LIBRAS,ECG --models random-ls2t,dtw --seeds 1
      seq2tens reproduce tsc --recipe paper --models fcn64-ls2t64-3 --workers 4 --data archive
      seq2tens reproduce tsc --ray 10.0.0.5:6379 --threads 4
    """
    cells = _cells(datasets, models, seeds, recipe, data)
    if dry_run:
        _list(cells, out)
        return
    _check_places(out, scratch)
    run = _runner(ray, workers, threads)
    with _resumable(out), refusing(OSError, ImportError, **OPTIONS):
        summary = run(cells, out, data=data, scratch=scratch, progress=progress)
    _report(summary, out)


def _cells(
    datasets: list[str] | None, models: list[str] | None, seeds: int, recipe: str, data: Path | None
) -> list[Cell]:
    """The cells that were asked for."""
    from seq2tens.experiments import grid, tsc

    with refusing(**OPTIONS):
        chosen = tsc.choose_datasets(_names(datasets), data)
        able = tsc.choose_models(_names(models))
        for reason in (*chosen.left_out, *able.left_out):
            note(reason)
        return grid("tsc", chosen.names, able.names, seeds=seeds, recipe=recipe)


def _names(given: list[str] | None) -> list[str] | None:
    """Names from options that may be repeated, and hold several each."""
    if not given:
        return None
    names = [name.strip() for part in given for name in part.split(",")]
    return list(dict.fromkeys(filter(None, names)))


def _list(cells: Sequence[Cell], out: Path) -> None:
    from seq2tens.experiments.table import finished
    from seq2tens.experiments.tsc import EXPERIMENT

    with refusing(OSError):
        done = finished(out)
    for cell in cells:
        typer.echo(f"{'finished' if cell.key in done else 'to run  '}  {cell}")
    there = sum(cell.key in done for cell in cells)
    typer.echo(f"{len(cells)} cells, {there} finished, {len(cells) - there} to run")
    typer.echo(f"{EXPERIMENT.cost}\n{EXPERIMENT.expected}")


def _check_places(out: Path, scratch: Path | None) -> None:
    """Refuse folders that cannot be made, before hours of computing."""
    if out.is_dir():
        raise UserError(f"`--out` must be a file, got the folder {out}")
    _models.check_folder(scratch, "--scratch")
    for folder, option in ((out.parent, "--out"), (scratch, "--scratch")):
        if folder is None:
            continue
        with refusing(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise UserError(f"`{option}` must lie in a folder that can be written to, got {folder}")


def _runner(ray: str | None, workers: int | None, threads: int | None) -> Callable[..., Summary]:
    """Where to run."""
    from seq2tens.experiments import run, run_on_ray

    if ray is None:
        return partial(run, workers=1 if workers is None else workers, threads=threads)
    if workers is not None:
        raise UserError("`--workers` is for this machine, but with `--ray` the cluster's cores decide")
    return partial(run_on_ray, address=ray, threads=1 if threads is None else threads)


@contextmanager
def _resumable(out: Path) -> Iterator[None]:
    """Say what becomes of the work after Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt:
        note(f"interrupted; what is finished is in {out}, and the same command goes on")
        raise typer.Exit(INTERRUPTED) from None


def _report(summary: Summary, out: Path) -> None:
    """What is new on stdout, what is not as it should be on stderr."""
    typer.echo(f"{len(summary.done)} cells added to {out}")
    if summary.elsewhere:
        note(f"{len(summary.elsewhere)} cells were left to another run that is at work on them")
    for cell, reason in summary.failed.items():
        note(f"{cell} failed: {reason}")
    if summary.failed:
        raise typer.Exit(FAILED)
