"""Imputers of PyPOTS with the conventions of this library, to compare with; an extra, `baselines`."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int

from seq2tens import _checks as check
from seq2tens._storage import Tensors
from seq2tens.data import Sequences, held_out
from seq2tens.estimators.devices import find_device
from seq2tens.estimators.imputers.autoencoder import constants
from seq2tens.estimators.imputers.formats import Values
from seq2tens.estimators.imputers.point import LEFT_OUT, PointImputer
from seq2tens.estimators.saving import plain
from seq2tens.estimators.seeds import RandomState, seed_of
from seq2tens.training.rng import initial

Cube = Float[np.ndarray, "sequences time channels"]


@dataclass(kw_only=True, eq=False, repr=False)
class PyPOTSImputer(PointImputer):
    """What the imputers of PyPOTS have in common.

    Channels are standardised with the statistics of the training data. Steps count as equally far apart.
    Sequences shorter than the longest one of training are continued with missing steps; longer ones are
    filled in pieces of its length. A channel that was constant in training is filled with that constant, and
    one that was never observed with 0. A tenth of the observed entries is not trained on: the weights that
    are best on it are kept, and intervals come from the errors made on it.

    Args:
        epochs: passes over the training data, at most.
        patience: training ends after as many epochs without a better one (None: it does not).
        batch_size: sequences per step of training.
        learning_rate: of Adam.
        random_state: an integer, a numpy `RandomState` or None.
        device: name of a Fabric accelerator; `"auto"` takes the fastest there is.
    """

    epochs: int = 100
    patience: int | None = 10
    batch_size: int = 32
    learning_rate: float = 1e-3
    random_state: RandomState = None
    device: str = "auto"

    def _network(self, pypots: Any, **common: Any) -> Any:
        """The model of PyPOTS, untrained; `common` are the arguments that all of them have."""
        raise NotImplementedError

    def _learn(self, X: Sequences) -> None:
        self._check_settings()
        # Attention that leaves out the step itself needs another one.
        self.n_steps_ = max(2, int(X.lengths.max()))
        self.constants_ = constants(X)
        # The same entries on which `PointImputer` looks at errors.
        trained, hidden = held_out(X.values, LEFT_OUT, np.random.default_rng(0))
        known = {"X": self._cube(Sequences(trained, X.offsets))}
        compared = {**known, "X_ori": self._cube(X)} if hidden.any() else None
        with self._new_model(seed_of(self.random_state)) as model:
            model.fit(known, compared)
            state = model.model.state_dict()
            self.weights_ = {name: tensor.detach().cpu().clone() for name, tensor in state.items()}

    def _fill(self, X: Sequences) -> Values:
        X = Sequences(X.values, _cut_offsets(X.offsets, self.n_steps_))
        with self._new_model(0) as model:
            model.model.load_state_dict(self.weights_)
            cube = np.asarray(model.predict({"X": self._cube(X)})["imputation"])
        filled = cube.reshape(len(X), self.n_steps_, -1)[_sequences_and_steps(X)].astype(np.float64)
        values = filled * self.scaler_.scale_ + self.scaler_.mean_
        return np.where(np.isnan(self.constants_), values, self.constants_)

    @contextmanager
    def _new_model(self, seed: int) -> Iterator[Any]:
        """A new model, within randomness of its own and without what PyPOTS has to say."""
        pypots = import_pypots(type(self).__name__)
        device = find_device(self.device)
        with initial(seed), _silenced(pypots.utils.logging.logger):
            yield self._network(
                pypots,
                n_steps=self.n_steps_,
                n_features=self.n_channels_,
                epochs=self.epochs,
                patience=None if self.patience is None else min(self.patience, self.epochs),
                batch_size=self.batch_size,
                optimizer=pypots.optim.Adam(lr=self.learning_rate),
                device=device,
                saving_path=None,
            )

    def _cube(self, X: Sequences) -> Cube:
        """Standardised values on a grid, NaN where nothing was observed and after the end."""
        cube = np.full((len(X), self.n_steps_, X.n_channels), np.nan, dtype=np.float32)
        cube[_sequences_and_steps(X)] = self.scaler_.transform(X).values
        return cube

    def _check_settings(self) -> None:
        for name in ("epochs", "batch_size", *([] if self.patience is None else ["patience"])):
            check.positive_int(name, getattr(self, name))
        check.require(
            self.learning_rate > 0, f"`learning_rate` must be greater than 0, got {self.learning_rate}"
        )

    def _tensors(self) -> Tensors:
        constants = {"constants": torch.from_numpy(self.constants_)}
        return {**super()._tensors(), **constants, **plain.join(network=self.weights_)}

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "n_steps": self.n_steps_}

    def _restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        self.n_steps_, self.constants_ = facts["n_steps"], tensors["constants"].numpy()
        self.weights_ = plain.split(tensors, "network")


@dataclass(kw_only=True, eq=False, repr=False)
class BRITSImputer(PyPOTSImputer):
    """BRITS of PyPOTS: recurrent networks in both directions of time.

    Cao et al., "BRITS: Bidirectional recurrent imputation for time series" (2018). See `PyPOTSImputer` for
    the other arguments.

    Args:
        width: size of the recurrent state.
    """

    width: int = 64

    _test_params: ClassVar[dict[str, Any]] = {"width": 4, "epochs": 2, "random_state": 0}

    def _network(self, pypots: Any, **common: Any) -> Any:
        return pypots.imputation.BRITS(rnn_hidden_size=self.width, **common)

    def _check_settings(self) -> None:
        super()._check_settings()
        check.positive_int("width", self.width)


@dataclass(kw_only=True, eq=False, repr=False)
class SAITSImputer(PyPOTSImputer):
    """SAITS of PyPOTS: two blocks of self-attention over time.

    Du et al., "SAITS: Self-attention-based imputation for time series" (2023). See `PyPOTSImputer` for the
    other arguments.

    Args:
        depth: layers of each block.
        width: size of the representation of a step, a multiple of `heads`.
        heads: of the attention.
        feed_forward: width within a layer.
        dropout: part of the units left out in training.
    """

    depth: int = 2
    width: int = 128
    heads: int = 4
    feed_forward: int = 128
    dropout: float = 0.1

    _test_params: ClassVar[dict[str, Any]] = {
        "depth": 1,
        "width": 8,
        "heads": 2,
        "feed_forward": 8,
        "epochs": 2,
        "random_state": 0,
    }

    def _network(self, pypots: Any, **common: Any) -> Any:
        size = self.width // self.heads
        return pypots.imputation.SAITS(
            n_layers=self.depth,
            d_model=self.width,
            n_heads=self.heads,
            d_k=size,
            d_v=size,
            d_ffn=self.feed_forward,
            dropout=self.dropout,
            **common,
        )

    def _check_settings(self) -> None:
        super()._check_settings()
        for name in ("depth", "width", "heads", "feed_forward"):
            check.positive_int(name, getattr(self, name))
        check.require(
            self.width % self.heads == 0,
            f"`width` must be a multiple of `heads` = {self.heads}, got {self.width}",
        )
        check.require(0 <= self.dropout < 1, f"`dropout` must lie in [0, 1), got {self.dropout}")


def import_pypots(purpose: str) -> Any:
    """The package, without the picture that it prints; it takes some seconds."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
            importlib.import_module("pypots.utils.logging")
            return importlib.import_module("pypots")
    except ImportError as error:
        raise ImportError(f"{purpose} needs PyPOTS: pip install 'seq2tens[baselines]'") from error
    finally:
        logging.disable(before)


@contextmanager
def _silenced(logger: logging.Logger) -> Iterator[None]:
    """Nothing is logged or warned of, and what PyPOTS would catch and only log, as Ctrl-C, is raised."""
    handled = sys.exc_info()[1]

    def raise_caught(record: logging.LogRecord) -> bool:
        error = sys.exc_info()[1]
        if error is not None and error is not handled:
            raise error
        return False

    logger.addFilter(raise_caught)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.removeFilter(raise_caught)


def _cut_offsets(offsets: Int[np.ndarray, " bounds"], longest: int) -> Int[np.ndarray, " pieces"]:
    """Bounds of pieces of at most so many steps."""
    inner = [np.arange(start, stop, longest) for start, stop in pairwise(offsets.tolist())]
    return np.append(np.concatenate(inner), offsets[-1])


def _sequences_and_steps(X: Sequences) -> tuple[Int[np.ndarray, " steps"], Int[np.ndarray, " steps"]]:
    """Sequence and step of each packed step."""
    return np.repeat(np.arange(len(X)), X.lengths), X.positions
