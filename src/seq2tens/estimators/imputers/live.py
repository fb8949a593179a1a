"""Online imputation, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from seq2tens import _checks as check
from seq2tens.data import Sequences
from seq2tens.estimators.streaming import Rows, Times, checked_rows, checked_times
from seq2tens.models.imputation import LEVELS, MEDIAN, Past, look_back
from seq2tens.nn import Stream
from seq2tens.nn.streaming import State, storage

if TYPE_CHECKING:
    from seq2tens.estimators.imputers.ls2t import LS2TImputer


class ImputerStream:
    """A fitted `LS2TImputer` that imputes step by step; see its method `stream`.

    A step is filled from the other channels at the same step and from all earlier steps, so its values are
    final at once. All arithmetic is in float64; the state has a fixed size.
    """

    def __init__(self, imputer: LS2TImputer, static: Any = None) -> None:
        self._imputer = imputer
        self._device = imputer.network_.causal.read_out.name.device
        self._static = _static_row(imputer, static)
        self._stream = Stream(imputer.network_.causal)
        self._past: Past | None = None
        self._timed, self._origin = False, 0.0

    @property
    def steps(self) -> int:
        """Number of steps pushed so far."""
        return self._stream.steps

    def push(self, rows: Rows, times: Times = None) -> Rows:
        """Push steps, and return them filled.

        Args:
            rows: values `(steps, channels)`, NaN where missing.
            times: times of the steps; by default steps have distance 1. Pass times for all steps or for none.

        Observed values are returned unchanged. After an error the stream is unchanged, too.
        """
        imputer = self._imputer
        rows = checked_rows(rows, imputer.n_channels_)
        if len(rows) == 0:
            return rows
        values, observed, clock = self._network_input(rows, times)
        features, past = look_back(values, observed, clock, self._past)
        static = self._static.expand(1, len(rows), -1)
        before = self._stream.state()
        quantiles = self._stream.push(torch.cat([features, static], dim=-1).to(self._device))
        median = quantiles.cpu().double().unflatten(-1, (imputer.n_channels_, len(LEVELS)))[0, ..., MEDIAN]
        if not bool(median.isfinite().all()):
            self._stream.restore(before)
            raise check.ArgumentError(
                "`rows` must have values of the size of those in training, "
                "but the network's output is not finite"
            )
        self._past, self._timed = past, times is not None
        self._origin = self._origin if times is None or self.steps > len(rows) else float(times[0])
        return np.where(np.isnan(rows), imputer._network_output(median.numpy()), rows)

    def reset(self) -> None:
        """Start a new sequence."""
        self._stream.reset()
        self._past, self._timed, self._origin = None, False, 0.0

    def state(self) -> dict[str, State]:
        """Return the state of the stream: a tree of dicts, tuples, tensors and numbers, of fixed size."""
        past = () if self._past is None else self._past
        return {
            "network": self._stream.state(),
            "past": tuple(t.clone(memory_format=torch.contiguous_format) for t in past),
            "static": self._static,
            "timed": float(self._timed),
            "origin": self._origin,
        }

    def restore(self, state: dict[str, State]) -> None:
        """Continue from the state of another stream of the same model."""
        keys = set(self.state())
        check.require(
            isinstance(state, dict) and set(state) == keys,
            f"`state` must be a dict with the keys {', '.join(sorted(keys))}",
        )
        check.require(
            torch.equal(state["static"], self._static),
            "`state` must come from a stream with the same static features, got different ones",
        )
        self._stream.restore(state["network"])
        self._past = Past(*state["past"]) if state["past"] else None
        self._timed, self._origin = bool(state["timed"]), float(state["origin"])

    def save(self, path: str | Path, notes: dict[str, Any] | None = None) -> None:
        """Write the state to a file atomically; see `load`."""
        storage.save(path, self.state(), notes or {})

    def load(self, path: str | Path) -> dict[str, Any]:
        """Restore the state that `save` wrote, and return the notes."""
        state, notes = storage.load(path)
        self.restore(state)
        return notes

    def _network_input(self, rows: Rows, times: Times) -> tuple[Tensor, Tensor, Tensor]:
        """Return scaled values, which of them are observed, and the time since the start in typical steps."""
        imputer = self._imputer
        known = np.where(np.isnan(imputer.constants_), rows, np.nan)
        scaled = (known - imputer.scaler_.mean_) / imputer.scaler_.scale_
        observed = torch.from_numpy(~np.isnan(scaled))
        values = torch.from_numpy(np.nan_to_num(scaled))
        return values[None], observed[None], torch.from_numpy(self._clock(len(rows), times))[None]

    def _clock(self, steps: int, times: Times) -> np.ndarray:
        if self.steps:
            check.require(
                (times is not None) == self._timed,
                f"`times` must be given for all steps or for none, got {'none' if times is None else 'some'} "
                f"after {'some' if self._timed else 'none'}",
            )
        if times is None:
            return (self.steps + np.arange(steps)) / self._imputer.step_
        last = np.nan if self._past is None else self._last_time()
        times = checked_times(times, steps, last)
        return (times - (self._origin if self.steps else times[0])) / self._imputer.step_

    def _last_time(self) -> float:
        assert self._past is not None
        return self._origin + float(self._past.clock[0]) * self._imputer.step_


def _static_row(imputer: LS2TImputer, static: Any) -> Tensor:
    """Return the scaled static features, empty if the model has none."""
    row = None if static is None else np.asarray(static, dtype=np.float64).reshape(1, -1)
    check.require(
        row is None or imputer.static_ is not None,
        "`static` must be None for a model without static features, got some",
    )
    scaled = imputer._static_input(
        Sequences(np.full((1, imputer.n_channels_), np.nan), np.array([0, 1]), None, row)
    )
    return (
        torch.empty(1, 0, dtype=torch.float64)
        if scaled is None
        else torch.tensor(scaled, dtype=torch.float64)
    )
