"""How much time has passed: since the start of a sequence, and since a channel was last observed."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from seq2tens.data.filling import last_before
from seq2tens.data.sequences import Sequences


def since_start(sequences: Sequences) -> Sequences:
    """Time since the first step of each sequence, as a channel; without times, the number of steps."""
    times = times_of(sequences)
    return Sequences((times - times[sequences.starts])[:, None], sequences.offsets)


def since_observed(sequences: Sequences) -> Sequences:
    """Per channel, the time since its last observation before the step; without times every step counts 1.

    Where there is none before, since the first step. This is what GRU-D calls the time interval: 0 at the
    first step, then the gap to the step before, plus that step's interval where the channel was not observed.
    """
    times, starts = times_of(sequences), sequences.starts
    before = last_before(~np.isnan(sequences.values), starts)
    return Sequences(times[:, None] - times[np.maximum(before, starts[:, None])], sequences.offsets)


def times_of(sequences: Sequences) -> Float[np.ndarray, " steps"]:
    """The time of each step; without times every step counts 1."""
    return sequences.positions.astype(np.float64) if sequences.times is None else sequences.times


def usual_step(sequences: Sequences) -> float:
    """The median time from a step to the next, by which time is counted; 1 where there are no times."""
    if sequences.times is None:
        return 1.0
    within = np.diff(sequences.starts) == 0
    steps = np.diff(sequences.times)[within]
    steps = steps[steps > 0]
    return float(np.median(steps)) if len(steps) else 1.0
