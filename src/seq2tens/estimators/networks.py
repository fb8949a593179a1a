"""Networks as classifiers in the style of scikit-learn and aeon."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens import training
from seq2tens._storage import Tensors
from seq2tens.data import Preparation, Sequences, length_blocks
from seq2tens.estimators.base import SequenceClassifier
from seq2tens.estimators.devices import find_device, is_first, make_fabric
from seq2tens.estimators.interruption import train
from seq2tens.estimators.saving import plain, restored
from seq2tens.estimators.saving.exporting import Probabilities
from seq2tens.estimators.seeds import RandomState, repeatable_seed
from seq2tens.estimators.weighting import class_weights, row_weights
from seq2tens.nn import Dense
from seq2tens.training import (
    Checkpoints,
    CrossEntropy,
    ProgressStyle,
    Recipe,
    SequenceBatch,
    SequenceSource,
    Subset,
    seeded_initialization,
    shuffling_generator,
)

# With at most this many training sequences, automatic scaling standardises each sequence by itself.
FEW_SEQUENCES = 100
# Arguments that override the recipe.
OVERRIDES = ("epochs", "batch_size", "learning_rate")


class WithHead(nn.Module):
    """A network of features followed by a linear layer that returns logits."""

    def __init__(self, features: nn.Module, n_classes: int, *, glorot: bool = False) -> None:
        super().__init__()
        self.features = features
        self.head = Dense(features.out_features, n_classes)  # type: ignore[arg-type]
        if glorot:
            nn.init.xavier_uniform_(self.head.weight)
            nn.init.zeros_(self.head.bias)

    def forward(self, values: Tensor, lengths: Tensor | None = None) -> Float[Tensor, "rows classes"]:
        """Return the logits of the sequences."""
        return self.head(self.features(values, lengths=lengths))


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkClassifier(SequenceClassifier):
    """Base class of the network classifiers; a subclass adds the sizes of its network.

    Args:
        recipe: `"fast"`, `"paper"` or a `training.Recipe`. With `"paper"`, the last layer is also initialised
            as in Keras: Glorot uniform weights and a bias of zero.
        epochs: overrides the recipe.
        batch_size: overrides the recipe.
        learning_rate: overrides the recipe.
        class_weight: None, `"balanced"` (equal weight for all classes) or a weight for each label; overrides
            the recipe.
        scaling: standardise each channel with the statistics of the training data (`"channel"`) or of each
            sequence by itself (`"sequence"`), or not at all (None). `"auto"` means `"sequence"` with at most
            100 training sequences, else `"channel"`.
        since_observed: add, for each channel, the time since its last observation as an input (see
            `data.Preparation`); for data with missing values.
        validation_fraction: stratified fraction of the training data to hold out. The weights with the
            lowest loss on it are kept; with a recipe that has `patience`, it also controls early stopping.
        checkpoint: a folder; a fit that was killed resumes when called again with the same arguments.
        progress: `"silent"` or False, `"auto"` or True, `"bar"` or `"lines"`.
        random_state: an integer, a numpy `RandomState` or None.
        device: name of a Fabric accelerator; `"auto"` takes the fastest available.
        devices: number of processes per machine, one device each, started by `torchrun`. `batch_size` is the
            global batch size, and the result is that of one process, except for dropout.
        num_nodes: number of machines.

    Fitted attributes are `network_`, `history_` (a row per epoch), `classes_`, `scaler_`, `n_channels_` and
    `interrupted_`. Ctrl-C ends a fit early: `fit` returns with a warning, and `interrupted_` is True. The
    weights are then the best so far if the recipe keeps the best, as it does with `validation_fraction`, else
    those of the last epoch. Before the end of the first epoch, and with several processes, the
    `KeyboardInterrupt` is raised.
    """

    recipe: Recipe | Literal["fast", "paper"] = "fast"
    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    class_weight: Literal["balanced"] | dict[Any, float] | None = "balanced"
    scaling: Literal["auto", "channel", "sequence"] | None = "auto"
    since_observed: bool = False
    validation_fraction: float | None = None
    checkpoint: str | Path | Checkpoints | None = None
    progress: ProgressStyle = "silent"
    random_state: RandomState = None
    device: str = "auto"
    devices: int = 1
    num_nodes: int = 1

    _tags: ClassVar[dict[str, Any]] = {"algorithm_type": "deeplearning"}
    _features: ClassVar[Callable[..., nn.Module]]
    _paper_model: ClassVar[Literal["fcn-ls2t", "resnet"]] = "fcn-ls2t"

    def _fit(self, X: Sequences, y: Shaped[np.ndarray, " rows"], sample_weight: Any = None) -> None:
        fabric = make_fabric(self.device, plain.python(self.devices), plain.python(self.num_nodes))
        seed = fabric.broadcast(repeatable_seed(self.random_state, self.checkpoint))
        labels = torch.from_numpy(np.searchsorted(self.classes_, y))
        train_rows, validation_rows = self._split(labels, seed)
        preparation = Preparation(self._scaling(len(X)), self.since_observed)
        self.preparation_ = preparation.fit(X if validation_rows is None else X[train_rows.numpy()])
        source = SequenceSource(self.preparation_.transform(X), labels, row_weights(sample_weight, labels))
        recipe = self._recipe(len(train_rows))
        self.network_ = self._network(seed)
        result = train(
            self.network_,
            self._loss(source, train_rows, recipe),
            source if validation_rows is None else Subset(source, train_rows),
            recipe=recipe,
            seed=seed,
            validation=None if validation_rows is None else Subset(source, validation_rows),
            metrics=None if validation_rows is None else {"accuracy": accuracy},
            fabric=fabric,
            checkpoint=self.checkpoint,
            progress=self.progress,
        )
        self.history_ = [dict(row) for row in result.history]
        self.interrupted_ = result.stopped == "interrupted"

    def save(self, path: str | Path, notes: dict[str, Any] | None = None) -> None:
        """Write the fitted estimator to a folder; in distributed training only the first process does."""
        if self.devices * self.num_nodes == 1 or is_first():
            super().save(path, notes)

    @torch.inference_mode()
    def _predict_proba(self, X: Sequences) -> Float[np.ndarray, "rows classes"]:
        source = SequenceSource(self.preparation_.transform(X))
        device = self.network_.head.weight.device
        logits = torch.empty(len(source), self.n_classes_, dtype=torch.float64)
        for block in map(torch.from_numpy, length_blocks(X.lengths)):
            values, lengths = source.batch(block)[:2]
            lengths = None if lengths is None else lengths.to(device)
            logits[block] = self.network_(values.to(device), lengths).cpu().double()
        wrong = (~logits.isfinite()).any(dim=1).nonzero()
        check.require(
            len(wrong) == 0,
            "`X` must have values of the size of those in training, "
            f"but the network's output for sequence {wrong[:1].sum()} is not finite",
        )
        return logits.softmax(dim=1).numpy()

    def _output_module(self) -> nn.Module:
        return Probabilities(copy.deepcopy(self.network_).cpu().eval())

    def _scaling(self, n_train: int) -> Literal["channel", "sequence"] | None:
        check.choice("scaling", self.scaling, ("auto", "channel", "sequence", None))
        return auto_scaling(n_train) if self.scaling == "auto" else self.scaling

    def _split(self, labels: Tensor, seed: int) -> tuple[Tensor, Tensor | None]:
        """Return the rows to train on, and those to validate on, if any."""
        if self.validation_fraction is None:
            return torch.arange(len(labels)), None
        check.require(
            0 < self.validation_fraction < 1,
            f"`validation_fraction` must lie in (0, 1), got {self.validation_fraction}",
        )
        train_rows, validation_rows = training.validation_split(
            labels, self.validation_fraction, shuffling_generator(seed, 0)
        )
        check.require(
            len(validation_rows) > 0,
            f"`validation_fraction` must give at least one of {len(labels)} sequences, "
            f"got none for {self.validation_fraction}",
        )
        return train_rows, validation_rows

    def _recipe(self, n_train: int) -> Recipe:
        """Return the recipe, with the overrides of the arguments."""
        recipe = self.recipe
        if not isinstance(recipe, Recipe):
            check.choice("recipe", recipe, ("fast", "paper"))
            paper = recipe == "paper"
            recipe = (
                training.paper_recipe(n_train, self._paper_model) if paper else training.fast_recipe(n_train)
            )
        arguments = {name: plain.python(getattr(self, name)) for name in OVERRIDES}
        changes = {name: value for name, value in arguments.items() if value is not None}
        changes["class_weights"] = self.class_weight is not None
        if self.validation_fraction is not None and recipe.monitor == "train_loss":
            changes |= {"monitor": "validation_loss", "mode": "min", "keep_best": True}
        return replace(recipe, **changes)

    def _loss(self, source: SequenceSource, rows: Tensor, recipe: Recipe) -> CrossEntropy:
        """Return the loss, with class weights computed from the training rows."""
        labels, weights = (None if t is None else t[rows] for t in (source.labels, source.weights))
        assert labels is not None
        return CrossEntropy(
            forward_batch,
            class_weights=class_weights(self.class_weight, self.classes_, labels, weights),
            label_smoothing=recipe.label_smoothing,
        )

    def _network(self, seed: int) -> WithHead:
        common = {field.name for field in fields(NetworkClassifier)}
        names = [field.name for field in fields(self) if field.name not in common]
        sizes = {name: plain.python(getattr(self, name)) for name in names}
        with seeded_initialization(seed):
            features = type(self)._features(self.preparation_.n_outputs, **sizes)
            return WithHead(features, self.n_classes_, glorot=self.recipe == "paper")

    def _tensors(self) -> Tensors:
        return self.network_.state_dict()

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "history": self.history_, "interrupted": self.interrupted_}

    def _restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        self.history_ = facts["history"]
        self.interrupted_ = facts.get("interrupted", False)  # absent from older models
        self.network_ = restored(lambda: self._network(seed=0), tensors, find_device(self.device))


def auto_scaling(n_train: int) -> Literal["channel", "sequence"]:
    """Return the default scaling for this number of training sequences."""
    return "sequence" if n_train <= FEW_SEQUENCES else "channel"


def forward_batch(model: nn.Module, batch: SequenceBatch) -> tuple[Tensor, ...]:
    """Return logits, labels and, if there are any, weights of a batch."""
    values, lengths, labels, weights = batch
    assert labels is not None
    logits = model(values, lengths)
    return (logits, labels) if weights is None else (logits, labels, weights)


def accuracy(logits: Float[Tensor, "rows classes"], labels: Tensor) -> float:
    """Return the fraction of rows that are classified correctly."""
    return float((logits.argmax(dim=1) == labels).double().mean())
