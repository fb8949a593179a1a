"""Base class of the imputers that train a network of this library."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from seq2tens import _checks as check
from seq2tens._storage import Tensors
from seq2tens.data import Sequences
from seq2tens.estimators.devices import find_device, make_fabric
from seq2tens.estimators.imputers.base import Imputer
from seq2tens.estimators.interruption import train
from seq2tens.estimators.saving import plain, restored
from seq2tens.training import Checkpoints, LossFunction, ProgressStyle, Recipe, Source


class NetworkImputer(Imputer):
    """Trains a network in which constant channels are masked, and saves it.

    Subclasses implement `_network(seed)`, and call `_train` in `_learn`. Attributes after `fit`: `network_`,
    `history_`, `interrupted_` and `constants_`, the value of each constant channel.
    """

    network_: Any
    epochs: int | None
    batch_size: int
    learning_rate: float
    checkpoint: str | Path | Checkpoints | None
    progress: ProgressStyle
    device: str

    # Number of training steps, and limits of the number of epochs, if `epochs` is None.
    _steps: ClassVar[int]
    _epoch_limits: ClassVar[tuple[int, int]]
    # Arguments of the recipe that are not arguments of the imputer.
    _recipe_options: ClassVar[dict[str, Any]]

    _tags: ClassVar[dict[str, Any]] = {"algorithm_type": "deeplearning"}

    def _network(self, seed: int) -> nn.Module:
        """Return the untrained network."""
        raise NotImplementedError

    def _train(self, loss: LossFunction, data: Source, seed: int, validation: Source | None = None) -> None:
        result = train(
            self.network_,
            loss,
            data,
            recipe=self._recipe(len(data)),
            seed=seed,
            validation=validation,
            fabric=make_fabric(self.device),
            checkpoint=self.checkpoint,
            progress=self.progress,
            stacklevel=6,
        )
        self.history_ = [dict(row) for row in result.history]
        self.interrupted_ = result.stopped == "interrupted"

    def _recipe(self, n_train: int) -> Recipe:
        batch_size = plain.python(self.batch_size)
        check.positive_int("batch_size", batch_size)
        low, high = self._epoch_limits
        default = min(max(round(self._steps / -(-n_train // batch_size)), low), high)
        return Recipe(
            epochs=default if self.epochs is None else plain.python(self.epochs),
            batch_size=batch_size,
            learning_rate=plain.python(self.learning_rate),
            sampling="buckets",
            **self._recipe_options,
        )

    def _without_constants(self, X: Sequences) -> Sequences:
        """Mask the constant channels."""
        return Sequences(np.where(np.isnan(self.constants_), X.values, np.nan), X.offsets)

    def _with_constants(self, values: Float[np.ndarray, "*draws steps channels"]) -> np.ndarray:
        """Fill in the constant channels."""
        return np.where(np.isnan(self.constants_), values, self.constants_)

    def _tensors(self) -> Tensors:
        constants = {"constants": torch.from_numpy(self.constants_)}
        return {**constants, **plain.join(network=self.network_.state_dict())}

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "history": self.history_, "interrupted": self.interrupted_}

    def _restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        self.interrupted_ = facts.get("interrupted", False)  # absent from older models
        self.history_, self.constants_ = facts["history"], tensors["constants"].numpy()
        weights = plain.split(tensors, "network")
        self.network_ = restored(lambda: self._network(seed=0), weights, find_device(self.device))


def constants(X: Sequences) -> Float[np.ndarray, " channels"]:
    """Return the value of each constant channel, 0 for channels without values, and NaN for all others."""
    missing = np.isnan(X.values)
    low = np.where(missing, np.inf, X.values).min(axis=0)
    high = np.where(missing, -np.inf, X.values).max(axis=0)
    return np.where(low < high, np.nan, np.where(low == high, low, 0.0)).astype(np.float64)
