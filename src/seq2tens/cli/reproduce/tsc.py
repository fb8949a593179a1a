"""`seq2tens reproduce tsc`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from seq2tens.cli._options import option
from seq2tens.cli._shared.catalogue import PAPER_NAMES
from seq2tens.cli._shell import note, refusing
from seq2tens.cli.reproduce import _runs
from seq2tens.cli.reproduce._runs import OPTIONS, Machines, Out, RunOptions

if TYPE_CHECKING:  # importing them takes seconds
    from seq2tens.experiments import Cell

Datasets = Annotated[
    list[str] | None,
    option("A,B,…", "Which data sets; repeatable. [default: those of the paper that are available]"),
]
Models = Annotated[list[str] | None, option("A,B,…", "Which models, see above; repeatable. [default: all]")]
Seeds = Annotated[int, option("N", "Runs of each model that has randomness: seeds 0 to N - 1.")]
Recipe = Annotated[
    str,
    option(
        "fast|paper|paper-masked",
        "How networks are trained: briefly (fast), or as in the paper, with its visible zeros in front of "
        "sequences (paper) or with masks (paper-masked).",
    ),
]
Data = Annotated[
    Path | None, option("DIR", "Folder with the data sets as tsc/NAME.npz. [default: SEQ2TENS_DATA]")
]


@dataclass(frozen=True)
class Grid:
    """Which cells to run."""

    datasets: Datasets = None
    models: Models = None
    seeds: Seeds = 5
    recipe: Recipe = "fast"

    def cells(self, data: Path | None) -> list[Cell]:
        """The cells that can be run; messages name the data sets that are left out."""
        from seq2tens.experiments import tsc

        with refusing(**OPTIONS):
            datasets = tsc.choose_datasets(_runs.names(self.datasets), data)
            models = tsc.choose_models(_paper_names(_runs.names(self.models)))
            for reason in datasets.left_out:
                note(reason)
            return tsc.grid("tsc", datasets.names, models, seeds=self.seeds, recipe=self.recipe)


def _paper_names(models: list[str] | None) -> list[str] | None:
    """Translate the names of `seq2tens fit` into those of the paper's table."""
    return None if models is None else [PAPER_NAMES.get(name, name) for name in models]


def tsc(
    *,
    grid: Grid,
    machines: Machines,
    out: Out = Path("results/tsc.csv"),
    data: Data = None,
    options: RunOptions,
) -> None:
    """Run the paper's classification experiment.

    Every data set, model and seed is a cell of a table. Finished cells are added to the table and not run
    again: the same command resumes after Ctrl-C, a crash or a reboot, a network from its last checkpoint.
    Each cell runs in a separate process; if some fail, the others run nevertheless, and the command names the
    failed ones at the end, with exit code 1.

    Data sets of the paper: Shapes, DigitShapes, LIBRAS, PenDigits, ECG, JapaneseVowels, KickvsPunch,
    CMUsubject16, WalkvsRun, Wafer, CharacterTrajectories, AUSLAN, UWave, NetFlow, PEMS, ArabicDigits.

    Models (--recipe applies to ls2t64-3, resnet and all with fcn in their names):

    \b
      ls2t64-3, fcn64-ls2t64-3, fcn128-ls2t64-3, fcn128, resnet, random-ls2t,
      dtw, muse, mlstm-fcn, multirocket-hydra, grsf, arkernel, smts, lps, mvarf

    The names ls2t, fcn-ls2t and fcn of `seq2tens fit` stand for ls2t64-3, fcn64-ls2t64-3 and fcn128.

    Examples:

    \b
      seq2tens reproduce tsc --dry-run
      seq2tens reproduce tsc --datasets LIBRAS,ECG --models random-ls2t,dtw --seeds 1
      seq2tens reproduce tsc --recipe paper --models fcn64-ls2t64-3 --workers 4 --data archive
      seq2tens reproduce tsc --ray 10.0.0.5:6379 --threads 4
    """
    from seq2tens.experiments.tsc import EXPERIMENT

    cells = grid.cells(data)
    if options.dry_run:
        _runs.list_cells(cells, out, EXPERIMENT)
        return
    _runs.execute(lambda run: run(cells, out, data=data), out, machines, options, OPTIONS)
