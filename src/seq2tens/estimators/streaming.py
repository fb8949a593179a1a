"""Online prediction: classifiers that are fed step by step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from sklearn.exceptions import NotFittedError
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens.data import Preparation, Scaler, Sequences, last_observed, values_at
from seq2tens.estimators.networks import NetworkClassifier, WithHead
from seq2tens.nn import Stream
from seq2tens.nn.streaming import State, storage

if TYPE_CHECKING:
    from seq2tens.estimators.base import SequenceClassifier

Rows = Float[np.ndarray, "steps channels"]
Times = Float[np.ndarray, " steps"] | None


class PreparationState(NamedTuple):
    """State of a `StreamPreparation`: what later steps need to know about earlier ones."""

    values: Float[np.ndarray, " channels"]  # last prepared values; before the first step, the fill values
    first: float = np.nan  # time of the first step
    last: float = np.nan  # time of the last step
    observed: Float[np.ndarray, " channels"] | None = None  # time of the last observation, if needed

    def tree(self) -> dict[str, State]:
        """Return the fields that are not None, as tensors and numbers."""
        return {
            name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
            for name, value in self._asdict().items()
            if value is not None
        }


class StreamPreparation:
    """`Preparation.transform` for a sequence that arrives in pieces: the same numbers, little overhead."""

    def __init__(self, preparation: Preparation, static: Any = None) -> None:
        check.require(
            preparation.scaling != "sequence",
            "`stream` needs a model that does not standardise each sequence by itself, because an unfinished "
            'sequence has no statistics yet; fit it with scaling="channel"',
        )
        self.preparation = preparation
        self.static = _static(preparation, static)

    def initial_state(self) -> PreparationState:
        """Return the state before the first step."""
        unobserved = np.full(self.preparation.n_channels, -np.inf)
        observed = unobserved if self.preparation.since_observed else None
        return PreparationState(self.preparation.fill.astype(np.float32), observed=observed)

    def prepare(self, rows: Rows, times: Times, carried: PreparationState) -> tuple[Rows, PreparationState]:
        """Return the network's input for these rows, and the state for the next ones."""
        known = np.where(self.preparation.known, rows, np.nan)
        scaled = _standardized(known, self.preparation.scaler)
        observed = ~np.isnan(scaled)
        filled = _filled(scaled, observed, carried.values)
        parts = [filled, observed.astype(np.float32)] if self.preparation.mask else [filled]
        carried = carried._replace(values=filled[-1])
        if times is None and carried.observed is not None:
            times = _counted(len(rows), carried)
        if times is not None:
            carried = carried._replace(first=float(times[0]) if np.isnan(carried.first) else carried.first)
            since, carried = self._elapsed(observed, times, carried)
            parts += since
        if self.static is not None:
            parts.append(np.repeat(self.static, len(rows), axis=0))
        return np.concatenate(parts, axis=1), carried

    def _elapsed(
        self, observed: np.ndarray, times: np.ndarray, carried: PreparationState
    ) -> tuple[list[Rows], PreparationState]:
        """Return the time channels, and the state for the next rows."""
        parts, last_times = [], carried.observed
        if last_times is not None:
            moments = np.concatenate([last_times[None], np.where(observed, times[:, None], -np.inf)])
            latest = np.maximum.accumulate(moments, axis=0)
            since = times[:, None] - np.maximum(latest[:-1], carried.first)
            parts.append(_standardized(since, self.preparation.since))
            last_times = latest[-1]
        if self.preparation.clock is not None:
            parts.append(_standardized(times[:, None] - carried.first, self.preparation.clock))
        return parts, carried._replace(last=float(times[-1]), observed=last_times)


def _counted(steps: int, carried: PreparationState) -> Float[np.ndarray, " steps"]:
    """Return times for steps that have none, one unit apart."""
    return np.arange(steps) + (0.0 if np.isnan(carried.last) else carried.last + 1)


def _standardized(values: np.ndarray, scaler: Scaler | None) -> Float[np.ndarray, "steps channels"]:
    with np.errstate(over="ignore"):  # infinite values are detected in the network's output
        return (values if scaler is None else (values - scaler.mean_) / scaler.scale_).astype(np.float32)


def _filled(values: Rows, observed: np.ndarray, before: np.ndarray) -> Rows:
    """Return the last observed value of each channel, `before` where there is none yet."""
    if len(values) == 1:
        return np.where(observed, values, before)
    return values_at(values, last_observed(observed, np.zeros(len(values), dtype=np.int64)), before)


def _static(preparation: Preparation, static: Any) -> Float[np.ndarray, "1 features"] | None:
    """Return the prepared static features of the sequence."""
    row = None if static is None else np.asarray(static, dtype=np.float64).reshape(1, -1)
    nothing = np.full((1, preparation.n_channels), np.nan)
    times = None if preparation.clock is None else np.zeros(1)
    sequence = Sequences(nothing, np.array([0, 1]), times, row)
    preparation.check(sequence, "stream")
    if row is None:
        return None
    return preparation.transform(sequence).values[:, -row.shape[1] :]


class ClassifierStream:
    """A fitted classifier that is fed step by step; see `SequenceClassifier.stream`."""

    def __init__(
        self, classifier: SequenceClassifier, *, length: int | None = None, static: Any = None
    ) -> None:
        if not classifier.is_fitted:
            raise NotFittedError(f"`stream` needs a fitted {type(classifier).__name__}; call `fit` first")
        network = _network(classifier)
        self.classes_, self._device = classifier.classes_, network.head.weight.device
        self._preparation, self._stream = _prepare(
            lambda: StreamPreparation(classifier.preparation_, static),
            lambda: Stream(nn.Sequential(network.features, network.head), length=length),
        )
        self._carried = self._preparation.initial_state()

    @property
    def steps(self) -> int:
        """Number of steps pushed so far."""
        return self._stream.steps

    def push(
        self, rows: Rows, times: Times = None, *, last: bool = False
    ) -> Float[np.ndarray, "outputs classes"]:
        """Feed some steps, and return the class probabilities after each of them.

        Args:
            rows: values `(steps, channels)`, NaN where missing.
            times: times of the steps, if the model was fitted with times.
            last: return probabilities after the last step only, which is faster.

        An error leaves the stream as it was.
        """
        rows, times = self._checked(rows, times)
        if len(rows) == 0:
            return np.empty((0, len(self.classes_)))
        prepared, carried = self._preparation.prepare(rows, times, self._carried)
        before = self._stream.state()
        logits = self._stream.push(torch.from_numpy(prepared)[None].to(self._device), last=last)[0]
        if not bool(logits.isfinite().all()):
            self._stream.restore(before)
            raise check.ArgumentError(
                "`rows` must have values of the size of those in training, in a sequence not much longer, "
                "but the network's output is not finite"
            )
        self._carried = carried
        return logits.cpu().double().softmax(dim=1).numpy()

    def reset(self) -> None:
        """Begin a new sequence."""
        self._stream.reset()
        self._carried = self._preparation.initial_state()

    def state(self) -> dict[str, State]:
        """Return the state of the stream: a tree of dicts, tuples, tensors and numbers, of fixed size."""
        return {"network": self._stream.state(), "static": self._static(), **self._carried.tree()}

    def restore(self, state: dict[str, State]) -> None:
        """Continue from the state of another stream of the same model."""
        carried = self._carried.tree()
        keys = {"network", "static", *carried}
        check.require(
            isinstance(state, dict) and set(state) == keys,
            f"`state` must be a dict with the keys {', '.join(sorted(keys))}",
        )
        check.require(
            torch.equal(state["static"], self._static()),
            "`state` must come from a stream with the same static features, got different ones",
        )
        self._stream.restore(state["network"])
        self._carried = PreparationState(
            **{n: state[n].numpy() if isinstance(carried[n], Tensor) else state[n] for n in carried}
        )

    def save(self, path: str | Path, notes: dict[str, Any] | None = None) -> None:
        """Write the state to a file; an existing file is replaced only once the new one is complete.

        `notes` is JSON data that `load` returns.
        """
        storage.save(path, self.state(), notes or {})

    def load(self, path: str | Path) -> dict[str, Any]:
        """Restore the state that `save` wrote, and return the notes."""
        state, notes = storage.load(path)
        self.restore(state)
        return notes

    def _static(self) -> Tensor:
        """Return the prepared static features, an empty tensor if there are none."""
        static = self._preparation.static
        return torch.empty(0) if static is None else torch.tensor(static[0])

    def _checked(self, rows: Any, times: Any) -> tuple[Rows, Times]:
        """Return rows and times as float64, after the checks that whole sequences get."""
        preparation = self._preparation.preparation
        rows, timed = checked_rows(rows, preparation.n_channels), preparation.clock is not None
        if (times is not None) != timed:
            raise check.ArgumentError(
                f"`times` must be given as in `fit` ({'some' if timed else 'none'}), "
                f"got {'none' if times is None else 'some'}"
            )
        return rows, None if times is None else checked_times(times, len(rows), self._carried.last)


def checked_rows(rows: Any, channels: int) -> Rows:
    """Check the rows and return them as float64."""
    rows = np.asarray(rows, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != channels:
        raise check.ArgumentError(
            f"`rows` must have shape (steps, {channels}) with the channels of `fit`, got {rows.shape}"
        )
    if np.isinf(rows).any():
        raise check.ArgumentError("`rows` must be finite, or NaN where missing, got infinity")
    return rows


def checked_times(times: Any, steps: int, last: float) -> Float[np.ndarray, " steps"]:
    """Check the times of steps after the time `last` (NaN if there is none), and return them as float64."""
    times = np.asarray(times, dtype=np.float64)
    if times.shape != (steps,):
        raise check.ArgumentError(f"`times` must have shape (steps,) = ({steps},), got {times.shape}")
    if not np.isfinite(times).all():
        raise check.ArgumentError("`times` must be finite")
    earlier = np.concatenate([[last], times])
    if (np.diff(earlier) < 0).any():
        step = int(np.flatnonzero(np.diff(earlier) < 0)[0])
        raise check.ArgumentError(
            f"`times` must not decrease, got {times[step]} after {earlier[step]} at index {step}"
        )
    return times


def _prepare(
    prepare: Callable[[], StreamPreparation], follow: Callable[[], Stream]
) -> tuple[StreamPreparation, Stream]:
    """Build both parts of a stream; if both fail, report both reasons in one error."""
    parts: list[Any] = []
    reasons = []
    for part in (prepare, follow):
        try:
            parts.append(part())
        except check.ArgumentError as error:
            reasons.append(str(error))
    check.require(not reasons, "; and ".join(reasons))
    preparation, stream = parts
    return preparation, stream


def _network(classifier: SequenceClassifier) -> WithHead:
    check.require(
        isinstance(classifier, NetworkClassifier),
        "`stream` needs a network, which can be fed step by step: FCNLS2TClassifier, DeepLS2TClassifier, "
        f"FCNClassifier or ResNetClassifier, got {type(classifier).__name__}",
    )
    return classifier.network_
