"""Values in place of those that were not observed."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from seq2tens._checks import choice, require
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


def forward_imputation(
    X: Float[np.ndarray, "n time channels"], initial: float | Float[np.ndarray, " channels"] = 0.0
) -> Float[np.ndarray, "n time channels"]:
    """`forward_fill` for an array: each NaN becomes the value before it, or `initial` where there is none."""
    n, steps, channels = X.shape
    packed = Sequences(X.reshape(n * steps, channels), np.arange(n + 1) * steps)
    return forward_fill(packed, initial).values.reshape(X.shape)


def mean_imputation(
    X: Float[np.ndarray, "n time channels"],
    reference: Float[np.ndarray, "m steps channels"] | None = None,
    *,
    over: str = "data",
) -> Float[np.ndarray, "n time channels"]:
    """Each NaN becomes the mean of its channel over what was observed; 0 where nothing was.

    Args:
        X: the array to fill.
        reference: the array to take means from, such as the training data (default: `X`).
        over: `"data"`: over time and all sequences; `"sequence"`: over the time of the same sequence, without
            a `reference`.
    """
    choice("over", over, ("data", "sequence"))
    require(
        reference is None or over == "data", "`reference` is for means over the data, got it with 'sequence'"
    )
    source = X if reference is None else reference
    axes = (0, 1) if over == "data" else 1
    counts = (~np.isnan(source)).sum(axis=axes, keepdims=True)
    means = np.nansum(source, axis=axes, dtype=np.float64, keepdims=True) / counts.clip(min=1)
    return np.where(np.isnan(X), means.astype(X.dtype), X)
