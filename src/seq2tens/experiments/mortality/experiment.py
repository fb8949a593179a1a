"""The paper's mortality experiment: in-hospital deaths of 12,000 intensive-care patients."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from lightning_fabric import Fabric
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens.data import physionet2012
from seq2tens.data.datasets.physionet2012 import Stays
from seq2tens.estimators import accuracy
from seq2tens.experiments.core import provenance
from seq2tens.experiments.core.registry import Experiment
from seq2tens.experiments.mortality.data import Inputs
from seq2tens.experiments.mortality.models import MODELS
from seq2tens.experiments.mortality.recipes import PAPER
from seq2tens.experiments.mortality.table import EPOCHS, MEASURES, TABLE, MortalityCell, MortalityRow
from seq2tens.training import Metric, Result, Source, fit, seeded_initialization, validate

EXPERIMENT = Experiment(
    name="mortality",
    command="seq2tens reproduce mortality",
    datasets=("physionet2012",),
    models=tuple(MODELS),
    cost=(
        "On one core an epoch with the published settings takes about 42 s for FCN-LS2T and 31 s for FCN, "
        "one of a baseline some seconds (GRU-Simple) to half a minute (Transformer, Latent-ODE); training "
        "ends after 31 to 200 epochs. A search is 20 such runs of each model."
    ),
    expected=(
        "Test AUPRC, as published: FCN-LS2T 0.539, FCN 0.528, GRU-D 0.537, Transformer 0.528; AUROC 0.856, "
        "0.856, 0.863, 0.863."
    ),
    cell=MortalityCell,
    table=TABLE,
)


def choose_models(names: Sequence[str] | None) -> list[str]:
    """Check the names of models; None selects all of them."""
    for name in names or ():
        check.choice("models", name, EXPERIMENT.models)
    return list(EXPERIMENT.models if names is None else names)


def named_settings(models: Sequence[str]) -> dict[str, str]:
    """The settings of runs without a search: the paper's, or ours if it does not state any."""
    return {name: MODELS[name].named for name in models}


def finals(
    settings: Mapping[str, str],
    *,
    seeds: int = 5,
    epochs: int = EPOCHS,
    recipe: str = PAPER,
    splits: Sequence[int] = (0,),
) -> list[MortalityCell]:
    """The cells of final runs with the chosen settings of each model, by seed and split."""
    check.positive_int("seeds", seeds)
    check.positive_int("epochs", epochs)
    return [
        MortalityCell("mortality", name, chosen, seed, "final", epochs, recipe, split)
        for seed in range(seeds)
        for split in splits
        for name, chosen in settings.items()
    ]


def measure(
    cell: MortalityCell,
    threads: int,
    *,
    data: str | None = None,
    checkpoint: Path | None = None,
    skip_bad: bool = False,
) -> MortalityRow:
    """Train on the training stays, keep the epoch with the best validation AUPRC, and test it once.

    Args:
        cell: what to run.
        threads: number of threads, for the row only; the caller sets that of torch.
        data: folder of the stays, as for `physionet2012.load`.
        checkpoint: folder for the state of the training, from which a second call resumes.
        skip_bad: leave out stays that cannot be read.
    """
    commit = provenance.commit()  # of the running code; the source tree may change during training
    prepare_seconds, (stays, inputs) = provenance.timed(lambda: _prepare(cell, data, skip_bad))
    validation = inputs.source(stays.validation)
    network, result = train(cell, inputs, inputs.source(stays.train), validation, checkpoint)
    best = result.best
    assert best is not None
    final = cell.purpose == "final"
    threshold = _scores(network, inputs, validation, {"threshold": best_threshold})["threshold"]
    predict_seconds, test_measures = (
        _test(network, inputs, stays, threshold) if final else (None, dict[str, float]())
    )
    measures: dict[str, Any] = {
        **{f"validation_{name}": round(best[f"validation_{name}"], 6) for name in MEASURES},
        **{f"test_{name}": test_measures.get(name) for name in (*MEASURES, "accuracy_at_threshold")},
        "threshold": threshold,
    }
    return MortalityRow(
        **cell.columns,
        **measures,
        **_training_columns(result),
        parameters=provenance.parameters(network),
        prepare_seconds=round(prepare_seconds, 3),
        predict_seconds=predict_seconds,
        n_train=len(stays.train),
        n_validation=len(stays.validation),
        n_test=len(stays.test) if final else None,
        **provenance.columns(threads, commit),
    )


def _training_columns(result: Result) -> dict[str, Any]:
    """The columns of a row about epochs and their seconds."""
    assert result.best is not None
    seconds = [row["seconds"] for row in result.history]
    return {
        "epochs": result.epochs,
        "best_epoch": int(result.best["epoch"]),
        "stopped": result.stopped,
        "fit_seconds": round(sum(seconds), 3),
        "epoch_seconds": round(statistics.median(seconds), 3),
    }


def _prepare(cell: MortalityCell, data: str | None, skip_bad: bool) -> tuple[Stays, Inputs]:
    stays = physionet2012.load(data, skip_bad=skip_bad, split=cell.split or None)
    return stays, MODELS[cell.model].setups[cell.recipe].inputs(stays)


def train(
    cell: MortalityCell, inputs: Inputs, train: Source, validation: Source, checkpoint: Path | None = None
) -> tuple[nn.Module, Result]:
    """Train a network; return it with the weights of its best epoch, and the result of the training."""
    setup = MODELS[cell.model].setups[cell.recipe]
    settings = MODELS[cell.model].resolve(cell.recipe, cell.settings)
    with seeded_initialization(cell.seed):
        network = setup.network(inputs, settings)
    result = fit(
        network,
        inputs.loss,
        train,
        recipe=setup.training(settings, cell.epoch_limit),
        seed=cell.seed,
        validation=validation,
        metrics=METRICS,
        checkpoint=checkpoint,
        progress="silent",
    )
    return network, result


def _test(
    network: nn.Module, inputs: Inputs, stays: Stays, threshold: float
) -> tuple[float, dict[str, float]]:
    """Seconds and measures on the test stays, which have not been used before."""
    source, metrics = inputs.source(stays.test), {"accuracy_at_threshold": partial(accuracy_at, threshold)}
    seconds, scores = provenance.timed(lambda: _scores(network, inputs, source, METRICS | metrics))
    return round(seconds, 3), scores


def _scores(
    network: nn.Module, inputs: Inputs, source: Source, metrics: Mapping[str, Metric]
) -> dict[str, float]:
    """The measures on some stays, rounded as in the table."""
    scores = validate(network, inputs.loss, source, metrics, Fabric(devices=1), 1)
    return {name: round(scores[f"validation_{name}"], 6) for name in metrics}


def _probabilities(logits: Float[Tensor, "rows 2"]) -> Float[np.ndarray, " rows"]:
    """The predicted probabilities of death."""
    return logits.double().softmax(dim=1)[:, 1].numpy()


def auprc(logits: Float[Tensor, "rows 2"], labels: Tensor) -> float:
    """Average precision."""
    return float(average_precision_score(labels.numpy(), _probabilities(logits)))


def auroc(logits: Float[Tensor, "rows 2"], labels: Tensor) -> float:
    """Area under the ROC curve."""
    return float(roc_auc_score(labels.numpy(), _probabilities(logits)))


def accuracy_at(threshold: float, logits: Float[Tensor, "rows 2"], labels: Tensor) -> float:
    """Accuracy if death is predicted from this probability on."""
    return float(np.mean((_probabilities(logits) >= threshold) == labels.numpy()))


def best_threshold(logits: Float[Tensor, "rows 2"], labels: Tensor) -> float:
    """The threshold of the probability of death with the best accuracy; of several, the one nearest to 1/2.

    Candidates are 1/2 and the midpoints between probabilities that occur.
    """
    probabilities, deaths = _probabilities(logits), labels.numpy() == 1
    levels = np.unique(np.concatenate([[0.0], probabilities, [1.0]]))
    thresholds = np.concatenate([[0.5], (levels[1:] + levels[:-1]) / 2])
    survived, died = np.sort(probabilities[~deaths]), np.sort(probabilities[deaths])
    right = np.searchsorted(survived, thresholds) + len(died) - np.searchsorted(died, thresholds)
    best = thresholds[right == right.max()]
    return float(best[np.abs(best - 0.5).argmin()])


METRICS: dict[str, Metric] = {"accuracy": accuracy, "auprc": auprc, "auroc": auroc}
