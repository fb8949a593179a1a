"""Simple imputation: values for entries that were not observed."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from seq2tens._checks import choice, require
from seq2tens.data.arrays import from_cube
from seq2tens.data.sequences import Sequences

Steps = Int[np.ndarray, "steps channels"]


def forward_fill(sequences: Sequences, initial: float | Float[np.ndarray, " channels"] = 0.0) -> Sequences:
    """Carry the last observed value of each channel forward; `initial` precedes the first one."""
    values = sequences.values
    observed = ~np.isnan(values)
    if observed.all():
        return sequences
    complete = values_at(values, last_observed(observed, sequences.starts), np.asarray(initial, values.dtype))
    return sequences.with_values(complete)


def last_observed(observed: Bool[np.ndarray, "steps channels"], starts: Int[np.ndarray, " steps"]) -> Steps:
    """Return the last step with a value in the same sequence up to each step; -1 if there is none."""
    last = np.maximum.accumulate(np.where(observed, np.arange(len(observed))[:, None], -1), axis=0)
    # The last value may belong to an earlier sequence.
    return np.where(last >= starts[:, None], last, -1)


def last_before(observed: Bool[np.ndarray, "steps channels"], starts: Int[np.ndarray, " steps"]) -> Steps:
    """Return the last step with a value in the same sequence before each step; -1 if there is none."""
    last = last_observed(observed, starts)
    earlier = np.concatenate([np.full_like(last[:1], -1), last[:-1]])
    return np.where(earlier >= starts[:, None], earlier, -1)


def values_at(
    values: Float[np.ndarray, "steps channels"], steps: Steps, default: Float[np.ndarray, "*channels"]
) -> Float[np.ndarray, "steps channels"]:
    """Return the values of each channel at these steps, the default where the step is -1."""
    return np.where(steps >= 0, np.take_along_axis(values, steps.clip(min=0), axis=0), default)


def forward_imputation(
    X: Float[np.ndarray, "n time channels"], initial: float | Float[np.ndarray, " channels"] = 0.0
) -> Float[np.ndarray, "n time channels"]:
    """Replace each NaN in an array by the last value before it, or by `initial` if there is none."""
    return forward_fill(from_cube(X), initial).values.reshape(X.shape)


def mean_imputation(
    X: Float[np.ndarray, "n time channels"],
    reference: Float[np.ndarray, "m steps channels"] | None = None,
    *,
    over: str = "data",
) -> Float[np.ndarray, "n time channels"]:
    """Replace each NaN by the mean of the observed values of its channel; 0 if there are none.

    Args:
        X: the array to fill.
        reference: the array to take means from, such as the training data (default: `X`).
        over: `"data"`: mean over time and all sequences; `"sequence"`: mean over the steps of the same
            sequence, without a `reference`.
    """
    choice("over", over, ("data", "sequence"))
    require(
        reference is None or over == "data", "`reference` must be None if `over` is 'sequence', got an array"
    )
    source = X if reference is None else reference
    axes = (0, 1) if over == "data" else 1
    counts = (~np.isnan(source)).sum(axis=axes, keepdims=True)
    means = np.nansum(source, axis=axes, dtype=np.float64, keepdims=True) / counts.clip(min=1)
    return np.where(np.isnan(X), means.astype(X.dtype), X)
