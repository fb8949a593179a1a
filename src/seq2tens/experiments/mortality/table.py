"""Cells of the mortality experiment, and its results table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from seq2tens import _checks as check
from seq2tens.data.datasets.physionet2012 import LATER_SPLITS
from seq2tens.experiments.core.cells import AnyCell
from seq2tens.experiments.core.rows import AnyRow, RowTable
from seq2tens.experiments.mortality.models import MODELS
from seq2tens.experiments.mortality.recipes import MASKED

# The purpose of a cell; a trial of a search never sees the test set.
Purpose = Literal["final", "trial"]
PURPOSES: tuple[Purpose, ...] = ("final", "trial")
EPOCHS = 200
MEASURES = ("accuracy", "auprc", "auroc")


@dataclass(frozen=True)
class MortalityCell(AnyCell):
    """One training run: a model with its settings, a seed and its purpose.

    `settings` is a name (`"published"`, `"default"`) or all settings as JSON; `epoch_limit` is 200 in the
    paper, and less in a shortened run. `recipe` is `"paper"`, as published, or `"paper-masked"`, with masks
    and our own inputs and training; `split` is 0 for the paper's and 1 to 5 for those of later work, see
    `data.physionet2012.load`.
    """

    model: str
    settings: str
    seed: int
    purpose: Purpose = "final"
    epoch_limit: int = EPOCHS
    recipe: str = MASKED
    split: int = 0
    LATER: ClassVar[tuple[str, ...]] = ("recipe", "split")

    def __post_init__(self) -> None:
        super().__post_init__()
        check.choice("model", self.model, tuple(MODELS))
        check.choice("purpose", self.purpose, PURPOSES)
        check.positive_int("epoch_limit", self.epoch_limit)
        check.choice("recipe", self.recipe, tuple(MODELS[self.model].setups))
        check.choice("split", self.split, (0, *LATER_SPLITS))
        MODELS[self.model].resolve(self.recipe, self.settings)

    def __str__(self) -> str:
        short = "" if self.epoch_limit == EPOCHS else f", at most {self.epoch_limit} epochs"
        kind = f"trial {self.settings}" if self.purpose == "trial" else f"settings {self.settings}"
        split = f", split {self.split}" if self.split else ""
        return f"{self.model} (seed {self.seed}, {kind}, {self.recipe}{split}{short})"


@dataclass(frozen=True, kw_only=True)
class MortalityRow(AnyRow):
    """A finished cell.

    Validation measures are those of `best_epoch`, whose weights were kept; test measures are None for a trial
    of a search. AUPRC is the average precision. Accuracies are those at a probability of 1/2, and at
    `threshold`, which maximises the validation accuracy; the latter is None in older rows. `stopped` is
    `"patience"` after early stopping and `"epochs"` if training reached `epoch_limit`.

    `fit_seconds` is the time of all epochs with their validation, `epoch_seconds` the median of one epoch,
    `prepare_seconds` the time to read and prepare the stays. `parameters` is the number of trainable ones;
    the other columns are those of `AnyRow`.
    """

    key: str
    model: str
    settings: str
    seed: int
    purpose: str
    epoch_limit: int
    recipe: str = MASKED
    split: int = 0
    validation_accuracy: float
    validation_auprc: float
    validation_auroc: float
    test_accuracy: float | None
    test_auprc: float | None
    test_auroc: float | None
    threshold: float | None = None
    test_accuracy_at_threshold: float | None = None
    epochs: int
    best_epoch: int
    stopped: str
    parameters: int
    prepare_seconds: float
    fit_seconds: float
    epoch_seconds: float
    predict_seconds: float | None
    peak_mib: float
    threads: int
    n_train: int
    n_validation: int
    n_test: int | None
    versions: str
    commit: str
    finished: str

    SHARES = (
        *(f"{part}_{measure}" for part in ("validation", "test") for measure in MEASURES),
        *("threshold", "test_accuracy_at_threshold"),
    )
    AMOUNTS = ("prepare_seconds", "fit_seconds", "epoch_seconds")

    def __post_init__(self) -> None:
        check.choice("purpose", self.purpose, PURPOSES)
        super().__post_init__()

    @property
    def headline(self) -> str:
        """The main result, in a few words."""
        part = "validation" if self.test_auprc is None else "test"
        scores = (f"{name} {getattr(self, f'{part}_{name}'):.4f}" for name in MEASURES)
        return f"{part} {', '.join(scores)}, {self.epochs} epochs, {self.fit_seconds:.0f} s"


TABLE = RowTable(MortalityRow)
