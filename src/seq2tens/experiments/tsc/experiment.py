"""The paper's classification experiment: sixteen data sets, every model of its table, and two more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from seq2tens import _checks as check
from seq2tens._archives import ENVIRONMENT
from seq2tens.data import available_datasets, load_dataset
from seq2tens.experiments.core import provenance
from seq2tens.experiments.core.registry import Experiment
from seq2tens.experiments.tsc.data import collections, published_collections
from seq2tens.experiments.tsc.models import MODELS
from seq2tens.experiments.tsc.table import MASKED, PUBLISHED, TABLE, Cell, Row
from seq2tens.training import Checkpoints

# Small ones first, so that a table soon has results.
DATASETS = (
    *("Shapes", "DigitShapes", "LIBRAS", "PenDigits", "ECG", "JapaneseVowels", "KickvsPunch", "CMUsubject16"),
    *("WalkvsRun", "Wafer", "CharacterTrajectories", "AUSLAN", "UWave", "NetFlow", "PEMS", "ArabicDigits"),
)
# Other archives have data sets with the same names but other splits.
ARCHIVES = ("tsc",)
EXPERIMENT = Experiment(
    name="tsc",
    command="seq2tens reproduce tsc",
    datasets=DATASETS,
    models=tuple(MODELS),
    cost=(
        "On one core a network takes a minute or two by the recipe `fast` on data sets such as LIBRAS and "
        "JapaneseVowels, and up to twenty times as many epochs by the recipe `paper`; the table has the "
        "seconds of every cell."
    ),
    expected=(
        "Mean accuracy over the sixteen data sets, as published: LS2T64³ 0.947, FCN64-LS2T64³ 0.968, "
        "FCN128-LS2T64³ 0.970, FCN128 0.966, ResNet 0.965."
    ),
    cell=Cell,
    table=TABLE,
)


class Choice(NamedTuple):
    """The names that can be run, and a sentence about those that cannot."""

    names: list[str]
    left_out: list[str]


def choose_datasets(names: Sequence[str] | None, folder: str | Path | None = None) -> Choice:
    """Check that these data sets are available; None selects all available ones of the paper."""
    available = set(available_datasets(folder, archives=ARCHIVES))
    if names is None:
        missing = [name for name in DATASETS if name not in available]
        sentence = f"left out, since not found: the data sets {', '.join(missing)}"
        return Choice([name for name in DATASETS if name in available], [sentence] if missing else [])
    for name in names:
        check.choice("datasets", name, DATASETS)
        check.require(
            name in available,
            f"`datasets` must be available as tsc/NAME.npz in `data` or the folder {ENVIRONMENT}, "
            f"got {name!r}, which is not",
        )
    return Choice(list(names), [])


def choose_models(names: Sequence[str] | None) -> list[str]:
    """Check the names of models; None selects all of them."""
    for name in names or ():
        check.choice("models", name, EXPERIMENT.models)
    return list(EXPERIMENT.models if names is None else names)


def measure(cell: Cell, threads: int, *, data: str | None = None, checkpoint: Path | None = None) -> Row:
    """Fit a model on the training half and test it on the test half.

    Args:
        cell: what to run.
        threads: number of threads, for models with `n_jobs`; the caller sets that of torch.
        data: folder of the data sets, as for `load_dataset`.
        checkpoint: folder for the state of the training, from which a second call resumes.
    """
    model = MODELS[cell.model]
    commit = provenance.commit()  # of the running code; the source tree may change during training
    train, test = load_dataset(cell.dataset, data, archives=ARCHIVES)
    published = cell.recipe == PUBLISHED
    series, test_series = published_collections(train, test) if published else collections(train, test, model)
    if model.compiled:
        _warm_up(_estimator(cell, threads), series, train.labels)
    estimator = _estimator(cell, threads)
    resumed = 0 if checkpoint is None or not model.trained else _resume(estimator, checkpoint)
    fit_seconds, _ = provenance.timed(lambda: estimator.fit(series, train.labels))
    if getattr(estimator, "interrupted_", False):  # an incomplete training is not a result
        raise KeyboardInterrupt
    predict_seconds, predicted = provenance.timed(lambda: estimator.predict(test_series))
    history = getattr(estimator, "history_", [])
    return Row(
        **cell.columns,
        accuracy=round(float(np.mean(np.asarray(predicted) == test.labels)), 6),
        epochs=len(history) if model.trained else None,
        lowest_train_loss=_lowest_loss(history),
        parameters=provenance.parameters(estimator.network_) if model.trained else None,
        # includes the epochs before an interruption
        fit_seconds=round(fit_seconds + sum(row["seconds"] for row in history[:resumed]), 3),
        predict_seconds=round(predict_seconds, 3),
        n_train=len(train),
        n_test=len(test),
        **provenance.columns(threads, commit),
    )


def _estimator(cell: Cell, threads: int) -> Any:
    """Create the estimator; both paper recipes train alike, but padded inputs are standardised already."""
    recipe = PUBLISHED if cell.recipe == MASKED else cell.recipe
    estimator = MODELS[cell.model].make(cell.seed, recipe, threads)
    return estimator.set_params(scaling=None) if cell.recipe == PUBLISHED else estimator


def _lowest_loss(history: Sequence[dict[str, float]]) -> float | None:
    return float(f"{min(row['train_loss'] for row in history):.4g}") if history else None


def _warm_up(estimator: Any, series: Any, labels: Any) -> None:
    """Fit and predict ten sequences of each of two classes, so that code is compiled before it is timed.

    With fewer sequences, MUSE fails on PenDigits, because it finds no discriminative word.
    """
    first = [int(i) for label in np.unique(labels)[:2] for i in np.flatnonzero(labels == label)[:10]]
    few = series[first] if isinstance(series, np.ndarray) else [series[i] for i in first]
    if "epochs" in estimator.get_params():
        estimator.set_params(epochs=1)
    estimator.fit(few, labels[first])
    estimator.predict(few)


def _resume(estimator: Any, checkpoint: Path) -> int:
    """Set the folder of checkpoints; return the number of epochs that are there already."""
    estimator.set_params(checkpoint=checkpoint)
    generations = Checkpoints(checkpoint).generations()
    return int(generations[0].stem.removeprefix("epoch-")) if generations else 0
