"""Imputers of PyPOTS with the interface of this library, as baselines: `pip install seq2tens[baselines]`."""

from __future__ import annotations

import importlib
import logging
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import nn

from seq2tens import _checks as check
from seq2tens._storage import Tensors
from seq2tens.data import Sequences, held_out
from seq2tens.estimators.devices import find_device
from seq2tens.estimators.imputers.base import Draws
from seq2tens.estimators.imputers.formats import Values
from seq2tens.estimators.imputers.network import constants
from seq2tens.estimators.imputers.point import LEFT_OUT, PointImputer
from seq2tens.estimators.saving import plain
from seq2tens.estimators.seeds import RandomState, seed_of
from seq2tens.training import Progress, ProgressStyle, Row, make_progress, seeded_initialization

# Log message of PyPOTS after an epoch; it offers no other way to follow training.
EPOCH = re.compile(
    r"Epoch (?P<epoch>\d+) - training loss \(.*?\): (?P<loss>[^\s,]+)(, validation .*: (?P<validation>\S+))?"
)
Cube = Float[np.ndarray, "sequences time channels"]


@dataclass(kw_only=True, eq=False, repr=False)
class PyPOTSImputer(PointImputer):
    """Base class of the PyPOTS imputers.

    Channels are standardised with the statistics of the training data. Steps are treated as evenly spaced.
    Sequences shorter than the longest one of training are padded with missing steps; longer ones are filled
    in pieces of its length. A channel that was constant in training is filled with that constant, and one
    that was never observed with 0. A tenth of the observed entries is held out: it selects the best weights,
    and intervals come from the errors on it.

    Args:
        epochs: maximum number of epochs.
        patience: early stopping after this many epochs without improvement (None: no early stopping).
        batch_size: sequences per training step.
        learning_rate: learning rate of Adam.
        time_limit: seconds after which training stops, with the best weights so far (None: no limit).
        progress: `"silent"` or False, `"auto"` or True, `"bar"` or `"lines"`.
        random_state: an integer, a numpy `RandomState` or None.
        device: name of a Fabric accelerator; `"auto"` takes the fastest available.

    Attributes after `fit`: `history_` with a row per epoch, and `timed_out_`: whether the time limit was
    reached. If that happened in the first epoch, its weights at that moment are kept.
    """

    epochs: int = 100
    patience: int | None = 10
    batch_size: int = 32
    learning_rate: float = 1e-3
    time_limit: float | None = None
    progress: ProgressStyle = "silent"
    random_state: RandomState = None
    device: str = "auto"

    # Number of validation sequences used to select the best epoch (None: all).
    _n_validation: ClassVar[int | None] = None

    def _network(self, pypots: Any, **common: Any) -> Any:
        """Return the untrained model of PyPOTS; `common` are the arguments that all models share."""
        raise NotImplementedError

    def _learn(self, X: Sequences) -> None:
        self._check_settings()
        progress = make_progress(self.progress, self.epochs, -(-len(X) // self.batch_size))
        # Attention that excludes the step itself needs at least one other.
        self.n_steps_ = max(2, int(X.lengths.max()))
        self.constants_ = constants(X)
        # The same entries on which `PointImputer` measures errors.
        trained, hidden = held_out(X.values, LEFT_OUT, np.random.default_rng(0))
        train = {"X": self._cube(Sequences(trained, X.offsets))}
        complete = {**train, "X_ori": self._cube(X)} if hidden.any() else {}
        validation = {name: cube[: self._n_validation] for name, cube in complete.items()} or None
        training = _Training(progress, self.time_limit)
        with self._new_model(seed_of(self.random_state), training.on_message) as model:
            training.fit(model, train, validation)
            state = model.best_model_dict or model.model.state_dict()
            self.weights_ = {name: tensor.detach().cpu().clone() for name, tensor in state.items()}
        self.history_, self.timed_out_ = training.history, training.timed_out

    def _fill(self, X: Sequences) -> Values:
        return self._predict(X, 0)[0]

    def _predict(self, X: Sequences, seed: int, **options: Any) -> Draws:
        """Predict every entry; most models make a single draw."""
        X = Sequences(X.values, _cut_offsets(X.offsets, self.n_steps_))
        with self._new_model(seed) as model:
            model.model.load_state_dict(self.weights_)
            cubes = np.asarray(model.predict({"X": self._cube(X)}, **options)["imputation"])
        sequence, step = _sequences_and_steps(X)
        filled = cubes.reshape(len(X), -1, self.n_steps_, X.n_channels)[sequence, :, step]
        values = filled.swapaxes(0, 1).astype(np.float64) * self.scaler_.scale_ + self.scaler_.mean_
        return np.where(np.isnan(self.constants_), values, self.constants_)

    @contextmanager
    def _new_model(self, seed: int, on_message: Callable[[str], object] = str) -> Iterator[Any]:
        """Yield a new model with its own random state; log messages of PyPOTS go to `on_message` only."""
        pypots = import_pypots(type(self).__name__)
        device = find_device(self.device)
        with (
            seeded_initialization(seed),
            _numpy_seeded(seed),
            _silenced(pypots.utils.logging.logger, on_message),
        ):
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
        """Return standardised values on a grid, NaN where missing and after the end of a sequence."""
        cube = np.full((len(X), self.n_steps_, X.n_channels), np.nan, dtype=np.float32)
        cube[_sequences_and_steps(X)] = self.scaler_.transform(X).values
        return cube

    def _check_settings(self) -> None:
        integers = [argument.name for argument in fields(self) if argument.type == "int"]
        for name in (*integers, *([] if self.patience is None else ["patience"])):
            check.positive_int(name, getattr(self, name))
        heads, width, dropout = (getattr(self, name, 0) for name in ("heads", "width", "dropout"))
        check.require(
            not heads or width % heads == 0, f"`width` must be a multiple of `heads` = {heads}, got {width}"
        )
        check.require(0 <= dropout < 1, f"`dropout` must lie in [0, 1), got {dropout}")
        check.require(
            self.learning_rate > 0, f"`learning_rate` must be greater than 0, got {self.learning_rate}"
        )
        limit = self.time_limit
        check.require(
            limit is None or (isinstance(limit, int | float) and limit > 0),
            f"`time_limit` must be None or seconds greater than 0, got {limit}",
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


class _TimeIsUp(Exception):
    """Raised to end training at the time limit."""


@dataclass
class _Training:
    """One training run: collects and shows what PyPOTS logs, and checks the time limit at every batch."""

    progress: Progress
    time_limit: float | None
    history: list[Row] = field(default_factory=list)
    timed_out: bool = False
    network: nn.Module = field(init=False)

    def fit(self, model: Any, train: dict[str, Cube], validation: dict[str, Cube] | None) -> None:
        """Train until the end or the time limit."""
        end = time.monotonic() + (self.time_limit or float("inf"))
        for name in ("_assemble_input_for_training", "_assemble_input_for_validating"):
            setattr(model, name, self._with_time_limit(model, getattr(model, name), end))
        self.network = model.model
        self.progress.start(())
        try:
            model.fit(train, validation)
        except _TimeIsUp:
            self.timed_out = True
        finally:
            self.progress.close()

    def on_message(self, message: str) -> None:
        """Record the losses of an epoch if this log message reports them."""
        match = EPOCH.match(message)
        if match:
            losses = {"loss": match["loss"], "validation_loss": match["validation"]}
            row = {"epoch": float(match["epoch"]), **{k: float(v) for k, v in losses.items() if v}}
            self.history.append(row)
            self.progress.epoch(row, self.network)

    def _with_time_limit(
        self, model: Any, assemble: Callable[[Any], Any], end: float
    ) -> Callable[[Any], Any]:
        def checked(batch: Any) -> Any:
            if time.monotonic() > end:
                raise _TimeIsUp
            self.progress.advance(int(model.model.training))
            return assemble(batch)

        return checked


def import_pypots(purpose: str) -> Any:
    """Import PyPOTS without the banner that it prints; this takes a few seconds."""
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
def _numpy_seeded(seed: int) -> Iterator[None]:
    """Seed numpy's global generator, which CSDI uses too, and restore it at the end."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed % 2**32)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002


@contextmanager
def _silenced(logger: logging.Logger, on_message: Callable[[str], object]) -> Iterator[None]:
    """Suppress log messages and warnings, and raise errors, such as Ctrl-C, that PyPOTS would only log."""
    handled = sys.exc_info()[1]

    def raise_caught(record: logging.LogRecord) -> bool:
        error = sys.exc_info()[1]
        if error is not None and error is not handled:
            raise error
        on_message(record.getMessage())
        return False

    logger.addFilter(raise_caught)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.removeFilter(raise_caught)


def _cut_offsets(offsets: Int[np.ndarray, " bounds"], longest: int) -> Int[np.ndarray, " pieces"]:
    """Return the bounds of pieces of at most `longest` steps."""
    inner = [np.arange(start, stop, longest) for start, stop in pairwise(offsets.tolist())]
    return np.append(np.concatenate(inner), offsets[-1])


def _sequences_and_steps(X: Sequences) -> tuple[Int[np.ndarray, " steps"], Int[np.ndarray, " steps"]]:
    """Return sequence and position of each packed step."""
    return np.repeat(np.arange(len(X)), X.lengths), X.positions
