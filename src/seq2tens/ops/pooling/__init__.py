"""Paths to numbers: pools along time."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor

from seq2tens.ops import accumulation_dtype, dispatch
from seq2tens.ops.pooling import cpu, reference

Levels = Float[Tensor, "batch time width"]
Lengths = Int[Tensor, " batch"]
Pooled = Float[Tensor, "batch width"]

# A comparison is a ramp of width 1 / steepness, not a jump: rounding must not decide about a step.
STEEPNESS = 8.0

for _operation in ("pool_path", "pool_contest"):
    dispatch.register(_operation, "cpu", getattr(cpu, _operation), dispatch.forward_unsupported)
    dispatch.register(_operation, "reference", getattr(reference, _operation), dispatch.always_supported)


class PathPools(NamedTuple):
    """Three numbers for every functional: how often, how long in a row and how unsteadily it is high."""

    share: Pooled  # of the steps above the threshold
    stretch: Pooled  # the most of them in a row, as a share of all steps
    changes: Pooled  # how often the threshold is crossed, per step


def pool_path(
    path: Levels, lengths: Lengths, threshold: Float[Tensor, " width"], steepness: float = STEEPNESS
) -> PathPools:
    """When a path is above a threshold.

    Sequences have at least one step; those from `lengths` on are not looked at.
    """
    path = path.to(accumulation_dtype(path))
    threshold = threshold.to(path.dtype)
    return PathPools(*dispatch.run("pool_path", None, path, lengths, threshold, steepness))


def pool_contest(path: Levels, lengths: Lengths, groups: int) -> tuple[Pooled, Pooled]:
    """How high each functional is when it is the highest of its group, and how often it is the lowest.

    Functional k belongs to group k mod `groups`, which divides their number; both are means over time.
    """
    path = path.to(accumulation_dtype(path))
    pooled: tuple[Pooled, Pooled] = dispatch.run("pool_contest", None, path, lengths, groups, STEEPNESS)
    return pooled
