"""Preprocessing of measurements for a network: complete, standardised channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from seq2tens import _checks as check
from seq2tens.data.elapsed import since_observed, since_start
from seq2tens.data.filling import forward_fill
from seq2tens.data.scaler import Scaler
from seq2tens.data.sequences import Sequences

KEYS = {"scaling", "scaler", "fill", "known", "mask", "clock", "static"}
# Part of the state only if it is used, so that older states can be read.
SINCE = "since"
InputKind = Literal["value", "observed", "since", "time", "static"]


class Preparation:
    """Turns values, missing entries, times and static features into channels without missing values.

    All statistics come from the sequences passed to `fit`, never from those passed to `transform`. The result
    has these channels:

    - the values, standardised (see `Scaler`; `scaling` None leaves them unchanged), each missing entry filled
      with the channel's last value, or with the mean if there is none before it;
    - if there were missing entries in `fit`: per channel, whether the entry was observed, 0 or 1;
    - with `since_observed`: per channel, the time since it was last observed before this step or, if it was
      not, since the first step, standardised; without times, in steps;
    - if there were times in `fit`: the time since the sequence's first step, standardised;
    - if there were static features in `fit`: these, standardised and 0 where unknown, at every step.

    A channel without any observed value in `fit` is always treated as missing.
    """

    def __init__(
        self, scaling: Literal["channel", "sequence"] | None = "channel", since_observed: bool = False
    ) -> None:
        check.choice("scaling", scaling, ("channel", "sequence", None))
        check.choice("since_observed", since_observed, (True, False))
        self.scaling = scaling
        self.since_observed = since_observed
        self.scaler: Scaler | None = None
        self.since: Scaler | None = None
        self.clock: Scaler | None = None
        self.static: Scaler | None = None
        self.mask = False
        self.known: Bool[np.ndarray, " channels"] = np.zeros(0, dtype=bool)
        self.fill: Float[np.ndarray, " channels"] = np.zeros(0)

    @property
    def n_channels(self) -> int:
        """Number of channels of the sequences."""
        return len(self.known)

    @property
    def n_outputs(self) -> int:
        """Number of channels of the result."""
        return len(self.columns)

    @property
    def columns(self) -> tuple[tuple[InputKind, int], ...]:
        """Kind of each channel of the result, and the number of its channel or static feature (else 0)."""
        per_channel: list[InputKind] = ["value"]
        per_channel += ["observed"] if self.mask else []
        per_channel += ["since"] if self.since_observed else []
        columns = [(kind, channel) for kind in per_channel for channel in range(self.n_channels)]
        columns += [] if self.clock is None else [("time", 0)]
        static = None if self.static is None else self.static.mean_
        return (*columns, *(("static", feature) for feature in range(0 if static is None else len(static))))

    def names(self, variables: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the names of the columns; `variables` names the channels, then the static features."""
        return tuple(self._name(kind, number, variables) for kind, number in self.columns)

    def _name(self, kind: InputKind, number: int, variables: Sequence[str]) -> str:
        if kind == "time":
            return kind
        place = number + (self.n_channels if kind == "static" else 0)
        known = variables[place] if place < len(variables) else None
        if kind == "value" or (kind == "static" and known is not None):
            return known or str(number)
        return f"{kind} {number if known is None else known}"

    def fit(self, sequences: Sequences) -> Preparation:
        """Learn the statistics, and which fields are present."""
        missing = np.isnan(sequences.values)
        self.known, self.mask = ~missing.all(axis=0), bool(missing.any())
        self.scaler = None if self.scaling is None else Scaler(self.scaling).fit(sequences)
        mean = Scaler().fit(sequences).mean_ if self.scaling is None else None
        self.fill = np.zeros(self.n_channels) if mean is None else mean
        self.since = Scaler().fit(since_observed(self._masked(sequences))) if self.since_observed else None
        self.clock = None if sequences.times is None else Scaler().fit(since_start(sequences))
        self.static = None if sequences.static is None else Scaler().fit(single_steps(sequences.static))
        return self

    def transform(self, sequences: Sequences) -> Sequences:
        """Return the channels in float32, as sequences without times and static features."""
        self.check(sequences)
        values = self._values(sequences)
        parts = [forward_fill(values, self.fill).values]
        if self.mask:
            parts.append((~np.isnan(values.values)).astype(np.float32))
        if self.since is not None:
            parts.append(self.since.transform(since_observed(self._masked(sequences))).values)
        if self.clock is not None:
            parts.append(self.clock.transform(since_start(sequences)).values)
        if self.static is not None and sequences.static is not None:
            rows = forward_fill(self.static.transform(single_steps(sequences.static))).values
            parts.append(np.repeat(rows, sequences.lengths, axis=0))
        return Sequences(np.concatenate(parts, axis=1), sequences.offsets)

    def check(self, sequences: Sequences, name: str = "sequences") -> None:
        """Require the same channels and fields as in `fit`."""
        check.require(self.n_channels > 0, "`transform` needs `fit` first")
        swapped = len(sequences) > 0 and bool((sequences.lengths == self.n_channels).all())
        hint = f", and {self.n_channels} steps: are its axes swapped?" if swapped else ""
        check.require(
            sequences.n_channels == self.n_channels,
            f"`{name}` must have {self.n_channels} channels as in `fit`, got {sequences.n_channels}{hint}",
        )
        for field, fitted in (("times", self.clock), ("static", self.static)):
            expected, actual = (
                "none" if absent else "some" for absent in (fitted is None, getattr(sequences, field) is None)
            )
            check.require(
                expected == actual, f"`{name}.{field}` must be given as in `fit` ({expected}), got {actual}"
            )
        if self.static is not None and self.static.mean_ is not None and sequences.static is not None:
            expected_features, features = len(self.static.mean_), sequences.static.shape[1]
            check.require(
                features == expected_features,
                f"`{name}.static` must have {expected_features} features as in `fit`, got {features}",
            )

    def state(self) -> dict[str, Any]:
        """Return JSON data for `from_state`."""
        scalers = {"scaler": self.scaler, "clock": self.clock, "static": self.static}
        if self.since is not None:
            scalers[SINCE] = self.since
        return {
            "scaling": self.scaling,
            "fill": self.fill.tolist(),
            "known": self.known.tolist(),
            "mask": self.mask,
            **{name: None if scaler is None else scaler.state() for name, scaler in scalers.items()},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Preparation:
        """Restore a preparation from its `state()`."""
        check.require(
            set(state) - {SINCE} == KEYS, f"`state` must have the keys {sorted(KEYS)}, got {sorted(state)}"
        )
        new = cls(state["scaling"], since_observed=SINCE in state)
        new.known, new.fill = np.array(state["known"], dtype=bool), np.array(state["fill"])
        new.mask = state["mask"]
        for name in ("scaler", SINCE, "clock", "static"):
            scaler = state.get(name)
            setattr(new, name, None if scaler is None else Scaler.from_state(scaler))
        return new

    def _values(self, sequences: Sequences) -> Sequences:
        """Return the scaled values in float32, NaN where missing."""
        masked = self._masked(sequences)
        bare = Sequences(masked.values, sequences.offsets)
        if self.scaler is not None:
            return self.scaler.transform(bare)
        return Sequences(masked.values.astype(np.float32), sequences.offsets)

    def _masked(self, sequences: Sequences) -> Sequences:
        """Mask the channels that had no observed value in `fit`."""
        if self.known.all():
            return sequences
        values = np.where(self.known, sequences.values, np.nan)
        return Sequences(values, sequences.offsets, sequences.times)


def single_steps(static: Float[np.ndarray, "sequences features"]) -> Sequences:
    """Convert rows of features to sequences of one step."""
    return Sequences(static, np.arange(len(static) + 1))
