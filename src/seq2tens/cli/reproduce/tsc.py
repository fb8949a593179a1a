"""`seq2tens reproduce tsc`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seq2tens.cli._shell import note, refusing
from seq2tens.cli.reproduce import _runs
from seq2tens.cli.reproduce._runs import OPTIONS, DryRun, Out, Progress, Ray, Scratch, Threads, Workers

if TYPE_CHECKING:  # importing them takes seconds
    from seq2tens.experiments import Cell

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
Data = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="DIR", help="Folder with the data sets as tsc/NAME.npz. [default: SEQ2TENS_DATA]"
    ),
]


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
    from seq2tens.experiments.tsc import EXPERIMENT

    cells = _cells(datasets, models, seeds, recipe, data)
    if dry_run:
        _runs.list_cells(cells, out, EXPERIMENT)
        return
    _runs.check_places(out, scratch)
    run = _runs.runner(ray, workers, threads)
    with _runs.resumable(out), refusing(OSError, ImportError, **OPTIONS):
        summary = run(cells, out, data=data, scratch=scratch, progress=progress)
    _runs.tell(summary, out)


def _cells(
    datasets: list[str] | None, models: list[str] | None, seeds: int, recipe: str, data: Path | None
) -> list[Cell]:
    """The cells that were asked for."""
    from seq2tens.experiments import grid, tsc

    with refusing(**OPTIONS):
        chosen = tsc.choose_datasets(_runs.names(datasets), data)
        able = tsc.choose_models(_runs.names(models))
        for reason in (*chosen.left_out, *able.left_out):
            note(reason)
        return grid("tsc", chosen.names, able.names, seeds=seeds, recipe=recipe)
