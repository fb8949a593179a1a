"""Values in place of those that were not observed."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from seq2tens.data.sequences import Sequences


def forward_fill(sequences: Sequences, initial: float | Float[np.ndarray, " channels"] = 0.0) -> Sequences:
    """Carry the last observed value of each channel forward; before the first one stands `initial`."""
    values = sequences.values
    seen = ~np.isnan(values)
    if seen.all():
        return sequences
    steps = np.arange(len(values))[:, None]
    last = np.maximum.accumulate(np.where(seen, steps, -1), axis=0)
    start = np.repeat(sequences.offsets[:-1], sequences.lengths)[:, None]
    filled = np.take_along_axis(values, last.clip(min=0), axis=0)
    # What was seen last may belong to an earlier sequence.
    complete = np.where(last >= start, filled, np.asarray(initial, dtype=values.dtype))
    return Sequences(complete, sequences.offsets, sequences.times, sequences.static)
