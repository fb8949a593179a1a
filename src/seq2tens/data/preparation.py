"""From what was measured to what a network reads: complete channels of the order of 1."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from seq2tens import _checks as check
from seq2tens.data.filling import forward_fill
from seq2tens.data.scaler import Scaler
from seq2tens.data.sequences import Sequences

KEYS = {"scaling", "scaler", "fill", "known", "mask", "clock", "static"}


class Preparation:
    """Turn values, missing entries, times and static features into channels without gaps.

    What it knows comes from the sequences given to `fit`, never from those given to `transform`. The result
    has, side by side,

    - the values, standardised (see `Scaler`; `scaling` None leaves them as they are), each missing entry
      filled with the channel's last value, or with the mean where there is none before it;
    - if `fit` has seen missing entries: per channel whether the entry was observed, 0 or 1;
    - if `fit` has seen times: the time since the sequence's first step, standardised;
    - if `fit` has seen static features: these, standardised and 0 where unknown, at every step.

    A channel of which `fit` has seen no entry counts as missing ever after.
    """

    def __init__(self, scaling: Literal["channel", "sequence"] | None = "channel") -> None:
        check.choice("scaling", scaling, ("channel", "sequence", None))
        self.scaling = scaling
        self.scaler: Scaler | None = None
        self.clock: Scaler | None = None
        self.static: Scaler | None = None
        self.mask = False
        self.known: Bool[np.ndarray, " channels"] = np.zeros(0, dtype=bool)
        self.fill: Float[np.ndarray, " channels"] = np.zeros(0)

    @property
    def n_channels(self) -> int:
        """Channels of the sequences."""
        return len(self.known)

    @property
    def n_outputs(self) -> int:
        """Channels of the result."""
        static = self.static.mean_ if self.static is not None else None
        extra = (0 if static is None else len(static)) + (self.clock is not None)
        return self.n_channels * (1 + self.mask) + extra

    def fit(self, sequences: Sequences) -> Preparation:
        """Learn statistics, and which fields there are."""
        missing = np.isnan(sequences.values)
        self.known, self.mask = ~missing.all(axis=0), bool(missing.any())
        self.scaler = None if self.scaling is None else Scaler(self.scaling).fit(sequences)
        mean = Scaler().fit(sequences).mean_ if self.scaling is None else None
        self.fill = np.zeros(self.n_channels) if mean is None else mean
        self.clock = None if sequences.times is None else Scaler().fit(_elapsed(sequences))
        self.static = None if sequences.static is None else Scaler().fit(_rows(sequences.static))
        return self

    def transform(self, sequences: Sequences) -> Sequences:
        """The channels, in float32, as sequences without times and static features."""
        self.check(sequences)
        values = self._values(sequences)
        parts = [forward_fill(values, self.fill).values]
        if self.mask:
            parts.append((~np.isnan(values.values)).astype(np.float32))
        if self.clock is not None:
            parts.append(self.clock.transform(_elapsed(sequences)).values)
        if self.static is not None and sequences.static is not None:
            rows = forward_fill(self.static.transform(_rows(sequences.static))).values
            parts.append(np.repeat(rows, sequences.lengths, axis=0))
        return Sequences(np.concatenate(parts, axis=1), sequences.offsets)

    def check(self, sequences: Sequences, name: str = "sequences") -> None:
        """Require the channels and fields that `fit` has seen."""
        check.require(self.n_channels > 0, "`transform` needs `fit` first")
        check.require(
            sequences.n_channels == self.n_channels,
            f"`{name}` must have {self.n_channels} channels as in `fit`, got {sequences.n_channels}",
        )
        for field, fitted in (("times", self.clock), ("static", self.static)):
            wanted, found = (
                "none" if absent else "some" for absent in (fitted is None, getattr(sequences, field) is None)
            )
            check.require(
                wanted == found, f"`{name}.{field}` must be given as in `fit` ({wanted}), got {found}"
            )
        if self.static is not None and self.static.mean_ is not None and sequences.static is not None:
            wanted_features, features = len(self.static.mean_), sequences.static.shape[1]
            check.require(
                features == wanted_features,
                f"`{name}.static` must have {wanted_features} features as in `fit`, got {features}",
            )

    def state(self) -> dict[str, Any]:
        """What `from_state` needs, as plain numbers and strings (JSON)."""
        scalers = {"scaler": self.scaler, "clock": self.clock, "static": self.static}
        return {
            "scaling": self.scaling,
            "fill": self.fill.tolist(),
            "known": self.known.tolist(),
            "mask": self.mask,
            **{name: None if scaler is None else scaler.state() for name, scaler in scalers.items()},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Preparation:
        """The preparation whose `state()` this is."""
        check.require(set(state) == KEYS, f"`state` must have the keys {sorted(KEYS)}, got {sorted(state)}")
        new = cls(state["scaling"])
        new.known, new.fill = np.array(state["known"], dtype=bool), np.array(state["fill"])
        new.mask = state["mask"]
        for name in ("scaler", "clock", "static"):
            setattr(new, name, None if state[name] is None else Scaler.from_state(state[name]))
        return new

    def _values(self, sequences: Sequences) -> Sequences:
        """Scaled, in float32, NaN where missing."""
        values = sequences.values
        if not self.known.all():
            values = np.where(self.known, values, np.nan)
        bare = Sequences(values, sequences.offsets)
        if self.scaler is not None:
            return self.scaler.transform(bare)
        return Sequences(values.astype(np.float32), sequences.offsets)


def _elapsed(sequences: Sequences) -> Sequences:
    """Time since each sequence's first step, as a channel."""
    assert sequences.times is not None
    lengths = sequences.lengths
    first = np.repeat(sequences.offsets[:-1], lengths)
    return Sequences((sequences.times - sequences.times[first])[:, None], sequences.offsets)


def _rows(static: Float[np.ndarray, "sequences features"]) -> Sequences:
    """Rows of features as sequences of one step."""
    return Sequences(static, np.arange(len(static) + 1))
