"""The paper's imputation experiment: rotating digits, characters of a game and stays in intensive care."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch

from seq2tens import _checks as check
from seq2tens.estimators import IMPUTERS, BRITSImputer
from seq2tens.experiments.core import provenance
from seq2tens.experiments.core.registry import Experiment
from seq2tens.experiments.imputation.data import Parts, blocks, channel_means, load
from seq2tens.experiments.imputation.files import (
    CellFiles,
    cell_files,
    write_bytes,
    write_calibration,
    write_curve,
)
from seq2tens.experiments.imputation.models import MODELS, SETTINGS, network
from seq2tens.experiments.imputation.pictures import picture
from seq2tens.experiments.imputation.scores import (
    Fill,
    Tally,
    aurocs,
    by_data_mean,
    by_forward,
    by_imputer,
    by_mean,
    by_network,
)
from seq2tens.experiments.imputation.table import TABLE, ImputationCell, ImputationRow, is_trained
from seq2tens.models.gpvae import GPVAE, HELD_OUT_METRICS, IncompleteSource, NegativeElbo
from seq2tens.training import CSVLog, Result, Source, Subset, fit, seeded_initialization

SIMPLE_FILLS: dict[str, Fill] = {"mean": by_mean, "forward": by_forward}
# Columns about training, for rules that are not trained.
NOT_TRAINED = {
    **dict.fromkeys(("validation_nll", "validation_mse", "epochs", "parameters", "epoch_seconds")),
    "fit_seconds": 0.0,
}
# The size of the recurrent state, as published.
BRITS_WIDTH = 108
# The number of sequences that are scored after every epoch, only for the learning curve.
WATCHED = 2000
EXPERIMENT = Experiment(
    name="imputation",
    command="seq2tens reproduce imputation",
    datasets=tuple(SETTINGS),
    models=tuple(MODELS),
    cost=(
        "On one core an epoch takes about 85 s for GP-VAE, 145 s with B-LS2T and 70 s for HI-VAE on HMNIST "
        "(20 epochs, and two minutes to turn the digits), 3 s, 7 s and 2 s on Physionet (40 epochs, and a "
        "minute for the AUROC of 20 orders); Sprites takes longest. Imputing and scoring the test part takes "
        "some minutes more."
    ),
    expected=(
        "As published: HMNIST NLL 0.251 and MSE 0.092 for GP-VAE (B-LS2T), 0.350 and 0.114 for GP-VAE; "
        "Physionet AUROC 0.743 and 0.730; Sprites MSE 0.002 for both."
    ),
    cell=ImputationCell,
    table=TABLE,
)


def cells(
    datasets: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    *,
    seeds: int = 5,
    epochs: int | None = None,
    limit: int | None = None,
) -> list[ImputationCell]:
    """All cells, seed by seed; a rule that is not trained has one cell per data set.

    Args:
        datasets: names of data sets; None selects all of them.
        models: names of models; None selects those of the paper's table for the data set.
        seeds: number of runs of each trained model: seeds 0 to `seeds` - 1.
        epochs: maximum number of epochs; None is the paper's.
        limit: train on the first `limit` sequences only.
    """
    datasets = list(datasets or SETTINGS)
    for name in datasets:
        check.choice("datasets", name, tuple(SETTINGS))
    for name in models or ():
        check.choice("models", name, tuple(MODELS))
    for name, number in (("seeds", seeds), ("epochs", epochs), ("limit", limit)):
        if number is not None:
            check.positive_int(name, number)
    return [
        _cell(dataset, model, seed, epochs, limit)
        for seed in range(seeds)
        for dataset in datasets
        for model in models or SETTINGS[dataset].models
        if seed == 0 or is_trained(model)
    ]


def _cell(dataset: str, model: str, seed: int, epochs: int | None, limit: int | None) -> ImputationCell:
    if not is_trained(model):
        return ImputationCell("imputation", dataset, model, 0, 0)
    most = SETTINGS[dataset].epochs
    return ImputationCell("imputation", dataset, model, seed, min(epochs or most, most), limit or 0)


class Trained(NamedTuple):
    """A function that fills entries, and, if it was trained, the result of the training and its columns."""

    fill: Fill
    result: Result | None = None
    columns: Mapping[str, Any] = MappingProxyType({})


def measure(
    cell: ImputationCell,
    threads: int,
    *,
    data: str | None = None,
    checkpoint: Path | None = None,
    keep: str | None = None,
) -> ImputationRow:
    """Train on the training part, impute the test part, and score it.

    Args:
        cell: what to run.
        threads: number of threads, for the row only; the caller sets that of torch.
        data: folder with the data sets.
        checkpoint: folder for the state of the training, from which a second call resumes, and for its
            history so far, `history.csv`.
        keep: folder for the learning curve and the pictures of the cell; None writes none.
    """
    commit = provenance.commit()  # of the running code; the source tree may change during training
    prepare_seconds, parts = provenance.timed(lambda: load(cell.dataset, data))
    trained = _train(cell, parts, checkpoint)
    predict_seconds, (tally, scores) = provenance.timed(lambda: _score(trained, parts))
    if keep is not None:
        _keep(cell_files(Path(keep), cell.key), cell, trained, parts, tally)
    return ImputationRow(
        **cell.columns,
        **scores,
        **{**NOT_TRAINED, **trained.columns},
        prepare_seconds=round(prepare_seconds, 3),
        predict_seconds=round(predict_seconds, 3),
        n_train=min(cell.limit or len(parts.train), len(parts.train)),
        n_test=len(parts.test),
        **provenance.columns(threads, commit),
    )


def _train(cell: ImputationCell, parts: Parts, checkpoint: Path | None) -> Trained:
    if cell.model == "data-mean":
        return Trained(by_data_mean(channel_means(parts.train)))
    if cell.model in SIMPLE_FILLS:
        return Trained(SIMPLE_FILLS[cell.model])
    if MODELS[cell.model].network is None:
        return _train_imputer(cell, parts)
    return _train_network(cell, parts, checkpoint)


def _train_imputer(cell: ImputationCell, parts: Parts) -> Trained:
    rows = np.arange(min(cell.limit or len(parts.train), len(parts.train)))
    imputer = _new_imputer(cell)
    seconds, _ = provenance.timed(lambda: imputer.fit(parts.train[rows].with_nan.transpose(0, 2, 1)))
    if getattr(imputer, "interrupted_", False):  # an incomplete training is not a result
        raise KeyboardInterrupt
    weights = imputer.weights_.values() if cell.model == "brits" else imputer.network_.parameters()
    columns = {
        "epochs": cell.epoch_limit,
        "parameters": sum(weight.numel() for weight in weights),
        "fit_seconds": round(seconds, 3),
        "epoch_seconds": round(seconds / cell.epoch_limit, 3),
    }
    return Trained(by_imputer(imputer), None, columns)


def _new_imputer(cell: ImputationCell) -> Any:
    """Create an imputer: BRITS as published, others with their default settings."""
    options: dict[str, Any] = {"epochs": cell.epoch_limit, "random_state": cell.seed, "device": "cpu"}
    if cell.model == "brits":
        batch_size = SETTINGS[cell.dataset].batch_size
        return BRITSImputer(width=BRITS_WIDTH, patience=None, batch_size=batch_size, **options)
    return IMPUTERS[cell.model](**options)


def _train_network(cell: ImputationCell, parts: Parts, checkpoint: Path | None) -> Trained:
    with seeded_initialization(cell.seed):
        model = network(cell.dataset, cell.model)
    watched = None
    if parts.watched is not None:
        watched = _first(IncompleteSource(parts.watched, scored=True), WATCHED)
    result = fit(
        model,
        NegativeElbo(),
        _first(IncompleteSource(parts.train), cell.limit),
        recipe=SETTINGS[cell.dataset].recipe(cell.epoch_limit),
        seed=cell.seed,
        validation=watched,
        metrics=None if watched is None else HELD_OUT_METRICS,
        callbacks=[] if checkpoint is None else [CSVLog(checkpoint / "history.csv")],
        checkpoint=checkpoint,
        progress="silent",
    )
    return Trained(by_network(model, cell.seed), result, _training(model, result, parts))


def _first(source: Source, n: int) -> Source:
    """The first `n` rows; all of them for 0."""
    return Subset(source, torch.arange(n)) if 0 < n < len(source) else source


def _score(trained: Trained, parts: Parts) -> tuple[Tally, dict[str, Any]]:
    """Impute the test part; return the tally and the columns of the row."""
    source = IncompleteSource(parts.test, scored=True)
    tally = Tally(binary=parts.binary, keep=parts.labels is not None)
    for rows in blocks(len(source)):
        batch = source.batch(torch.from_numpy(rows))
        tally.add(batch, trained.fill(batch))
    return tally, {**tally.scores(), **_areas(tally, parts)}


def _areas(tally: Tally, parts: Parts) -> dict[str, Any]:
    if parts.labels is None:
        return {"auroc": None}
    areas = aurocs(tally.sequences(), parts.labels, parts.orders)
    orders = " ".join(f"{area:.6f}" for area in areas) if parts.orders else ""
    return {"auroc": round(statistics.fmean(areas), 6), "auroc_orders": orders}


def _training(network: GPVAE, result: Result, parts: Parts) -> dict[str, Any]:
    """The columns about the training."""
    seconds = [row["seconds"] for row in result.history]
    last = result.history[-1]
    return {
        "validation_nll": _rounded(last.get("validation_nll")),
        "validation_mse": _rounded(last.get(_validation_error(parts))),
        "epochs": result.epochs,
        "parameters": provenance.parameters(network),
        "fit_seconds": round(sum(seconds), 3),
        "epoch_seconds": round(statistics.median(seconds), 3),
    }


def _keep(files: CellFiles, cell: ImputationCell, trained: Trained, parts: Parts, tally: Tally) -> None:
    """Write the small files next to the table."""
    if trained.result is not None:
        write_curve(files.curve, trained.result.history, _validation_error(parts))
    if curve := tally.calibration():
        write_calibration(files.calibration, curve)
    if image := SETTINGS[cell.dataset].network.get("image_shape"):
        write_bytes(files.picture, picture(parts.test, image, trained.fill))


def _validation_error(parts: Parts) -> str:
    return "validation_rounded_mse" if parts.binary else "validation_mse"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
