"""Pooling along time: summaries of the path of each functional."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor

from seq2tens.ops import accumulation_dtype, dispatch
from seq2tens.ops.pooling import cpu, reference

Levels = Float[Tensor, "batch time width"]
Lengths = Int[Tensor, " batch"]
Pooled = Float[Tensor, "batch width"]

# A comparison is a ramp of width 1 / steepness instead of a jump, so that rounding does not decide a step.
STEEPNESS = 8.0

for _operation in ("pool_path", "pool_contest"):
    dispatch.register(_operation, "cpu", getattr(cpu, _operation), dispatch.forward_unsupported)
    dispatch.register(_operation, "reference", getattr(reference, _operation), dispatch.always_supported)


class PathPools(NamedTuple):
    """Three statistics of the path of every functional, relative to a threshold."""

    share: Pooled  # fraction of the steps above the threshold
    stretch: Pooled  # longest run of such steps, as a fraction of all steps
    changes: Pooled  # crossings of the threshold per step


def pool_path(
    path: Levels, lengths: Lengths, threshold: Float[Tensor, " width"], steepness: float = STEEPNESS
) -> PathPools:
    """Summarise when a path is above a threshold.

    Every sequence must have at least one step; steps beyond `lengths` are ignored.
    """
    path = path.to(accumulation_dtype(path))
    threshold = threshold.to(path.dtype)
    return PathPools(*dispatch.run("pool_path", None, path, lengths, threshold, steepness))


def pool_contest(path: Levels, lengths: Lengths, groups: int) -> tuple[Pooled, Pooled]:
    """Return how high each functional is while highest in its group, and how often it is the lowest.

    Functional k belongs to group k mod `groups`, which must divide their number. Both are means over time.
    """
    path = path.to(accumulation_dtype(path))
    pooled: tuple[Pooled, Pooled] = dispatch.run("pool_contest", None, path, lengths, groups, STEEPNESS)
    return pooled
