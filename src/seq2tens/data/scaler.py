"""Standardisation with statistics of the observed entries."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from seq2tens import _checks as check
from seq2tens.data.sequences import Sequences

Statistics = tuple[Float[np.ndarray, " channels"], Float[np.ndarray, " channels"]]


class Scaler:
    """Shifts and scales each channel to mean 0 and variance 1.

    `"channel"` uses the statistics of the sequences given to `fit`, over all their observed entries;
    `"sequence"` those of each sequence by itself, so `fit` learns nothing. A constant channel is only
    shifted; one without any observation is not changed. Missing entries stay missing.
    """

    def __init__(self, mode: Literal["channel", "sequence"] = "channel") -> None:
        check.choice("mode", mode, ("channel", "sequence"))
        self.mode = mode
        self.mean_: Float[np.ndarray, " channels"] | None = None
        self.scale_: Float[np.ndarray, " channels"] | None = None

    def fit(self, sequences: Sequences) -> Scaler:
        """Learn the statistics of each channel."""
        if self.mode == "channel":
            self.mean_, self.scale_ = _statistics(sequences.values)
        return self

    def transform(self, sequences: Sequences) -> Sequences:
        """Return the standardised sequences, in float32."""
        values = self._by_sequence(sequences) if self.mode == "sequence" else self._by_channel(sequences)
        return sequences.with_values(values)

    def state(self) -> dict[str, Any]:
        """Return JSON data for `from_state`."""
        mean, scale = self.mean_, self.scale_
        return {
            "mode": self.mode,
            "mean": None if mean is None else mean.tolist(),
            "scale": None if scale is None else scale.tolist(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Scaler:
        """Restore a scaler from its `state()`."""
        keys = {"mode", "mean", "scale"}
        check.require(set(state) == keys, f"`state` must have the keys {sorted(keys)}, got {sorted(state)}")
        scaler = cls(state["mode"])
        if state["mean"] is not None:
            scaler.mean_, scaler.scale_ = np.array(state["mean"]), np.array(state["scale"])
        return scaler

    def _by_channel(self, sequences: Sequences) -> Float[np.ndarray, "steps channels"]:
        if self.mean_ is None or self.scale_ is None:
            raise check.ArgumentError('`transform` in mode "channel" needs `fit` first')
        check.require(
            len(self.mean_) == sequences.n_channels,
            f"`sequences` must have {len(self.mean_)} channels as in `fit`, got {sequences.n_channels}",
        )
        return _standardize(sequences.values, (self.mean_, self.scale_))

    @staticmethod
    def _by_sequence(sequences: Sequences) -> Float[np.ndarray, "steps channels"]:
        values = np.empty(sequences.values.shape, dtype=np.float32)
        for i, sequence in enumerate(sequences):
            values[sequences.offsets[i] : sequences.offsets[i + 1]] = _standardize(
                sequence, _statistics(sequence)
            )
        return values


def _statistics(values: Float[np.ndarray, "steps channels"]) -> Statistics:
    """Return mean and scale of each channel over the observed entries, in float64."""
    observed = ~np.isnan(values)
    count = np.maximum(observed.sum(axis=0), 1)
    mean = np.where(observed, values, 0).sum(axis=0, dtype=np.float64) / count
    deviation = np.where(observed, values - mean, 0)
    scale = np.sqrt((deviation**2).sum(axis=0) / count)
    low = np.where(observed, values, np.inf).min(axis=0, initial=np.inf)
    high = np.where(observed, values, -np.inf).max(axis=0, initial=-np.inf)
    # Constants are found by comparison: rounding makes their deviation tiny, not 0, and a division explode.
    return mean, np.where((low >= high) | (scale == 0), 1.0, scale)


def _standardize(values: np.ndarray, statistics: Statistics) -> Float[np.ndarray, "steps channels"]:
    mean, scale = statistics
    return ((values - mean) / scale).astype(np.float32)
