"""`seq2tens reproduce imputation`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from seq2tens.cli._options import option
from seq2tens.cli._shell import refusing
from seq2tens.cli.reproduce import _runs
from seq2tens.cli.reproduce._runs import OPTIONS, Machines, Out, RunOptions

if TYPE_CHECKING:  # importing them takes seconds
    from collections.abc import Callable

    from seq2tens.experiments import Summary

NAMES = OPTIONS | {"datasets": "--dataset", "dataset": "--dataset", "epochs": "--epochs", "limit": "--limit"}
Datasets = Annotated[
    list[str] | None,
    option("A,B,…", "hmnist, sprites, sprites-conv256 or physionet; repeatable. [default: all]", "--dataset"),
]
Models = Annotated[
    list[str] | None,
    option("A,B,…", "Which models, see above; repeatable. [default: those of the paper's table]"),
]
Seeds = Annotated[int, option("N", "Runs of each model that is trained: seeds 0 to N - 1.")]
Epochs = Annotated[
    int | None,
    option(
        "N",
        "Maximum number of epochs; fewer than in the paper make other cells, reported as shortened. "
        "[default: the paper's]",
    ),
]
Limit = Annotated[
    int | None,
    option("N", "Train on the first N sequences only, which makes other cells, reported as shortened."),
]
Data = Annotated[
    Path | None, option("DIR", "Folder with mnist/, sprites/ and physionet2012/. [default: SEQ2TENS_DATA]")
]


@dataclass(frozen=True)
class Grid:
    """Which cells to run."""

    datasets: Datasets = None
    models: Models = None
    seeds: Seeds = 5
    epochs: Epochs = None
    limit: Limit = None


def imputation(
    *,
    grid: Grid,
    machines: Machines,
    out: Out = Path("results/imputation.csv"),
    data: Data = None,
    options: RunOptions,
) -> None:
    """Run the paper's imputation experiment.

    There are three data sets with missing entries: hmnist, rotating digits made from MNIST; sprites,
    characters of a game (sprites-conv256: with the wider convolution of the paper's appendix); physionet,
    stays in intensive care. A model is trained on the observed entries, with the published settings, and
    fills the missing entries of the test set. Scores on held-out entries are NLL and MSE, and, where there
    are labels, the AUROC of a logistic regression on the imputed sequences.

    Every data set, model and seed is a cell of a table. Finished cells are added to the table and not run
    again: the same command resumes after Ctrl-C, a crash or a reboot, a network from its last checkpoint.
    Next to the table, each cell writes its learning curve and its calibration (curves/imputation) and a
    picture of imputed frames (figures/imputation).

    By default, the models of the paper's table are run; BRITS, on physionet, needs PyPOTS. The last six
    models are ours. mean, forward and data-mean are not trained:

    \b
      mean, forward, vae, hi-vae, gp-vae, gp-vae-bls2t, brits,
      ls2t, data-mean, vae-conv, hi-vae-conv, gp-vae-bls2t-no-relu, gp-vae-bls2t-wide

    Examples:

    \b
      seq2tens reproduce imputation --dataset hmnist --models gp-vae,gp-vae-bls2t --seeds 1
      seq2tens reproduce imputation --dataset physionet --data archive
      seq2tens reproduce imputation --dataset sprites --epochs 2 --limit 500 --seeds 1
      seq2tens reproduce imputation --ray 10.0.0.5:6379 --threads 4
    """
    from seq2tens.experiments.imputation import EXPERIMENT, cells, check_present

    with refusing(**NAMES):
        chosen = cells(
            _runs.names(grid.datasets),
            _runs.names(grid.models),
            seeds=grid.seeds,
            epochs=grid.epochs,
            limit=grid.limit,
        )
    if options.dry_run:
        _runs.list_cells(chosen, out, EXPERIMENT)
        return

    def work(run: Callable[..., Summary]) -> Summary:
        check_present(list(dict.fromkeys(cell.dataset for cell in chosen)), data)
        return run(chosen, out, data=data, keep=str(out.parent.resolve()))

    _runs.execute(work, out, machines, options, NAMES)
