"""How a network is trained, as plain data that goes to JSON and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from seq2tens import _checks as check
from seq2tens.training import schedules
from seq2tens.training.schedules import Mode, OneCycle, Plateau, Schedule

Sampling = Literal["shuffle", "remainder", "buckets", "balanced", "oversampled"]


@dataclass(frozen=True, kw_only=True)
class BatchRule:
    """A part of the training set, rounded down, but not less than `low` nor more than `high`."""

    fraction: float
    low: int
    high: int

    def __post_init__(self) -> None:
        check.between("fraction", self.fraction, 0, 1)
        check.positive_int("low", self.low)
        check.positive_int("high", self.high)
        check.require(self.low <= self.high, f"`high` must be at least `low` = {self.low}, got {self.high}")

    def size(self, n_train: int) -> int:
        """The batch size for so many training sequences."""
        return min(max(math.floor(self.fraction * n_train), self.low), self.high)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything about training that is neither network nor data.

    Args:
        epochs: maximum number of epochs.
        batch_size: a number, or a rule that finds it from the size of the training set. With several
            processes it is the number over all of them.
        optimizer: `"adam"` (weight decay is added to the gradient) or `"adamw"` (decoupled).
        learning_rate: the highest rate.
        eps: what the optimiser adds to the root of a squared gradient's mean; Keras has 1e-7.
        weight_decay: for all parameters.
        schedule: `Constant`, `Plateau`, `OneCycle`, `Cosine` or `StepDecay`.
        monitor: column of the history used for plateaus, early stopping and the best weights: `"train_loss"`,
            `"validation_loss"` or `"validation_<metric>"`.
        mode: whether less (`"min"`) or more (`"max"`) of it is better.
        patience: early stopping after this many epochs without improvement; None never stops early.
        keep_best: end with the weights of the best epoch rather than the last.
        clip_norm: scale a gradient of larger norm down to this norm.
        label_smoothing: for a loss that supports it, such as `CrossEntropy`.
        class_weights: for a loss that supports them, such as `CrossEntropy`.
        sampling: `"shuffle"` (batches of nearly the same size), `"remainder"` (full batches, and what is left
            in the last one, as in Keras), `"buckets"` (sequences of similar length together) or `"balanced"`
            (the same number from every class in each batch; an epoch is all of the smallest class) or
            `"oversampled"` (likewise, but an epoch is all of the largest class, or three times the smallest
            where that is less; small classes are repeated).
        average: decay of an exponential moving average of the weights, which then takes the place of the
            weights in validation and in the result.
    """

    epochs: int
    batch_size: int | BatchRule
    optimizer: Literal["adam", "adamw"] = "adam"
    learning_rate: float = 1e-3
    eps: float = 1e-8
    weight_decay: float = 0.0
    schedule: Schedule = field(default_factory=schedules.Constant)
    monitor: str = "train_loss"
    mode: Mode = "min"
    patience: int | None = None
    keep_best: bool = True
    clip_norm: float | None = None
    label_smoothing: float = 0.0
    class_weights: bool = False
    sampling: Sampling = "shuffle"
    average: float | None = None

    def __post_init__(self) -> None:
        self._check_counts()
        self._check_numbers()
        self._check_choices()

    def _check_counts(self) -> None:
        check.positive_int("epochs", self.epochs)
        if not isinstance(self.batch_size, BatchRule):
            check.positive_int("batch_size", self.batch_size)
        if self.patience is not None:
            check.positive_int("patience", self.patience)

    def _check_numbers(self) -> None:
        check.between("learning_rate", self.learning_rate, 0, math.inf)
        check.between("eps", self.eps, 0, math.inf)
        check.between("weight_decay", self.weight_decay, 0, math.inf, low_included=True)
        check.between("label_smoothing", self.label_smoothing, 0, 1, low_included=True)
        if self.clip_norm is not None:
            check.between("clip_norm", self.clip_norm, 0, math.inf)
        if self.average is not None:
            check.between("average", self.average, 0, 1)

    def _check_choices(self) -> None:
        check.choice("optimizer", self.optimizer, ("adam", "adamw"))
        check.choice("mode", self.mode, ("min", "max"))
        check.choice("sampling", self.sampling, get_args(Sampling))
        check.choice("keep_best", self.keep_best, (False, True))
        check.choice("class_weights", self.class_weights, (False, True))
        check.require(
            self.monitor == "train_loss" or self.monitor.startswith("validation_"),
            f"`monitor` must be 'train_loss' or begin with 'validation_', got {self.monitor!r}",
        )
        if not isinstance(self.schedule, Schedule):
            names = ", ".join(cls.__name__ for cls in schedules.SCHEDULES.values())
            raise TypeError(f"`schedule` must be one of {names}, got {type(self.schedule).__name__}")

    def size(self, n_train: int) -> int:
        """The batch size for so many training sequences."""
        rule = self.batch_size
        return rule.size(n_train) if isinstance(rule, BatchRule) else rule

    def better(self, value: float, best: float | None) -> bool:
        """Whether the monitor has improved; NaN never has."""
        if best is None:
            return not math.isnan(value)
        return value < best if self.mode == "min" else value > best

    def to_dict(self) -> dict[str, Any]:
        """The recipe as JSON data."""
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        data["schedule"] = schedules.to_dict(self.schedule)
        if isinstance(self.batch_size, BatchRule):
            data["batch_size"] = asdict(self.batch_size)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Recipe:
        """The recipe that `to_dict` wrote; a key that it does not know is an error."""
        values = dict(data)
        if "schedule" in values:
            values["schedule"] = schedules.from_dict(values["schedule"])
        if isinstance(values.get("batch_size"), Mapping):
            values["batch_size"] = check.from_fields(BatchRule, values["batch_size"], "batch_size")
        return check.from_fields(cls, values, "recipe")

    def to_json(self) -> str:
        """The recipe as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_json(cls, text: str) -> Recipe:
        """The recipe in a JSON text."""
        return cls.from_dict(json.loads(text))


def paper_recipe(n_train: int, model: Literal["fcn-ls2t", "resnet"] = "fcn-ls2t") -> Recipe:
    """The paper's recipe for time series classification, with class-balanced weights.

    Adam's `eps` and the batch with what is left are those of Keras, which the authors used. `"fcn-ls2t"`
    stands for every network but the residual one.
    """
    check.positive_int("n_train", n_train)
    check.choice("model", model, ("fcn-ls2t", "resnet"))
    epochs, high = (1500, 64) if model == "resnet" else (2000, 16)
    return Recipe(
        epochs=epochs,
        batch_size=BatchRule(fraction=0.1, low=4, high=high).size(n_train),
        optimizer="adam",
        learning_rate=1e-3,
        eps=1e-7,
        schedule=Plateau(patience=100, factor=0.5, floor=1e-4),
        patience=500,
        keep_best=True,
        class_weights=True,
        sampling="remainder",
    )


def fast_recipe(n_train: int) -> Recipe:
    """A short recipe: one cycle of AdamW over about 1500 steps, in 30 to 200 epochs.

    Chosen by cross-validation inside training sets, where smoothed labels helped most: on JapaneseVowels
    they took a third of the recordings held out from 0.981 to 0.996.
    """
    check.positive_int("n_train", n_train)
    batch_size = BatchRule(fraction=0.06, low=8, high=64).size(n_train)
    epochs = round(1500 / math.ceil(n_train / batch_size))
    return Recipe(
        epochs=min(max(epochs, 30), 200),
        batch_size=batch_size,
        optimizer="adamw",
        learning_rate=3e-3,
        weight_decay=0.05,
        schedule=OneCycle(),
        keep_best=False,
        clip_norm=1.0,
        label_smoothing=0.1,
        class_weights=True,
    )
