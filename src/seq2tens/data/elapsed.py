"""Elapsed time since the start of a sequence, and since a channel was last observed."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from seq2tens.data.filling import last_before
from seq2tens.data.sequences import Sequences


def since_start(sequences: Sequences) -> Sequences:
    """Return the time since the first step of each sequence, as a channel; without times, in steps."""
    times = times_of(sequences)
    return Sequences((times - times[sequences.starts])[:, None], sequences.offsets)


def since_observed(sequences: Sequences) -> Sequences:
    """Return, per channel, the time since its last observation before each step; without times, in steps.

    Without an earlier observation, it is the time since the first step. This is what GRU-D calls the time
    interval: 0 at the first step, then the gap to the previous step, plus the interval of that step if the
    channel was not observed there.
    """
    times, starts = times_of(sequences), sequences.starts
    before = last_before(~np.isnan(sequences.values), starts)
    return Sequences(times[:, None] - times[np.maximum(before, starts[:, None])], sequences.offsets)


def times_of(sequences: Sequences) -> Float[np.ndarray, " steps"]:
    """Return the time of each step; without times, its position."""
    return sequences.positions.astype(np.float64) if sequences.times is None else sequences.times


def usual_step(sequences: Sequences) -> float:
    """Return the median time between successive steps, the typical step; 1 without times."""
    if sequences.times is None:
        return 1.0
    within = np.diff(sequences.starts) == 0
    steps = np.diff(sequences.times)[within]
    steps = steps[steps > 0]
    return float(np.median(steps)) if len(steps) else 1.0
