"""Cells and rows of the imputation experiment."""

from __future__ import annotations

from dataclasses import dataclass

from seq2tens import _checks as check
from seq2tens.experiments.core.cells import AnyCell
from seq2tens.experiments.core.rows import AnyRow, RowTable
from seq2tens.experiments.imputation.models import MODELS, SETTINGS

# The version of data, models and scores; it is empty in rows from before the published protocol.
PROTOCOL = "published"


@dataclass(frozen=True)
class ImputationCell(AnyCell):
    """One imputation of a data set: a model, a seed and the amount of training.

    `epoch_limit` is the number of epochs, that of the paper or less, and 0 for a rule that is not trained;
    `limit` is the number of training sequences, 0 for all of them.
    """

    dataset: str
    model: str
    seed: int
    epoch_limit: int
    limit: int = 0
    protocol: str = PROTOCOL

    def __post_init__(self) -> None:
        super().__post_init__()
        check.choice("protocol", self.protocol, (PROTOCOL,))
        check.choice("dataset", self.dataset, tuple(SETTINGS))
        check.choice("model", self.model, tuple(MODELS))
        if is_trained(self.model):
            check.positive_int("epoch_limit", self.epoch_limit)
            return
        for name in ("seed", "epoch_limit", "limit"):
            value = getattr(self, name)
            check.require(
                value == 0, f"`{name}` of {self.model}, which is not trained, must be 0, got {value}"
            )

    def __str__(self) -> str:
        if not is_trained(self.model):
            return f"{self.dataset} {self.model}"
        short = "" if self.epoch_limit >= SETTINGS[self.dataset].epochs else f", {self.epoch_limit} epochs"
        few = f", {self.limit} sequences" if self.limit else ""
        return f"{self.dataset} {self.model} (seed {self.seed}{short}{few})"


def is_trained(model: str) -> bool:
    """Whether a model is trained in epochs."""
    return MODELS[model].trained


@dataclass(frozen=True, kw_only=True)
class ImputationRow(AnyRow):
    """A finished cell.

    Scores are those of the test part. `nll` and `mse` are means over the hidden entries: the negative
    log-likelihood at one draw of the latent path of each sequence, and the squared error at its mean, for
    HMNIST with probabilities rounded to 0 or 1, as published; `mse_probability` is that without rounding.
    `auroc` is that of a logistic regression on imputed sequences. If their order is unknown, it is a mean
    over random orders, and `auroc_orders` are its values in each of them, separated by blanks; the orders are
    the same for all models. `coverage` is the fraction of hidden entries in their predicted interval of 90 %.
    Measures that a data set or a model does not have are None, and so are `validation_nll` and
    `validation_mse` if nothing is watched; otherwise they are those of the first test sequences after the
    last epoch (in rows without `protocol`, of a validation part).

    `protocol` is empty in rows from before the published protocol was known in full: the data of Physionet
    and HMNIST and the networks were different. Do not compare them with the others.

    `fit_seconds` is the time of all epochs with their validation, `epoch_seconds` the median of one epoch,
    `prepare_seconds` the time to read or generate the data, and `predict_seconds` that to impute and score
    the test part. `parameters` is the number of trainable ones, None without training, like `epochs`; the
    other columns are those of `AnyRow`.
    """

    key: str
    dataset: str
    model: str
    seed: int
    epoch_limit: int
    limit: int
    nll: float | None
    mse: float | None
    mse_probability: float | None
    auroc: float | None
    coverage: float | None
    validation_nll: float | None
    validation_mse: float | None
    epochs: int | None
    parameters: int | None
    prepare_seconds: float
    fit_seconds: float
    epoch_seconds: float | None
    predict_seconds: float
    peak_mib: float
    threads: int
    n_train: int
    n_test: int
    versions: str
    commit: str
    finished: str
    protocol: str = ""
    auroc_orders: str = ""

    SHARES = ("auroc", "coverage")
    AMOUNTS = ("prepare_seconds", "fit_seconds", "predict_seconds")

    @property
    def headline(self) -> str:
        """The main result, in a few words."""
        scores = [
            f"{name.upper()} {value:.4f}"
            for name in ("nll", "mse", "auroc")
            if (value := getattr(self, name)) is not None
        ]
        trained = [] if self.epochs is None else [f"{self.epochs} epochs", f"{self.fit_seconds:.0f} s"]
        return ", ".join(scores + trained)


TABLE = RowTable(ImputationRow)
