"""How much time has passed: since the start of a sequence, and since a channel was last observed."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from seq2tens.data.sequences import Sequences


def since_start(sequences: Sequences) -> Sequences:
    """Time since each sequence's first step, as a channel; without times every step counts 1."""
    times = _times(sequences)
    return Sequences((times - times[_starts(sequences)])[:, None], sequences.offsets)


def since_observed(sequences: Sequences) -> Sequences:
    """Per channel, the time since its last observation before the step; without times every step counts 1.

    Where there is none before, since the first step. This is what GRU-D calls the time interval: 0 at the
    first step, then the gap to the step before, plus that step's interval where the channel was not observed.
    """
    times, starts = _times(sequences), _starts(sequences)[:, None]
    last = np.where(np.isnan(sequences.values), -1, np.arange(len(times))[:, None])
    np.maximum.accumulate(last, axis=0, out=last)
    since = np.zeros(last.shape)
    # What was seen before may belong to an earlier sequence.
    np.subtract(times[1:, None], times[np.maximum(last[:-1], starts[1:])], out=since[1:])
    return Sequences(since, sequences.offsets)


def _times(sequences: Sequences) -> Float[np.ndarray, " steps"]:
    if sequences.times is not None:
        return sequences.times
    return np.arange(len(sequences.values), dtype=np.float64)


def _starts(sequences: Sequences) -> np.ndarray:
    """The first step of the sequence that each step belongs to."""
    return np.repeat(sequences.offsets[:-1], sequences.lengths)
