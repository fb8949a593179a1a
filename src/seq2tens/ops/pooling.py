"""Paths to numbers: pools along time, each in one pass over its path, on one thread."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

Path = Float[Tensor, "batch time width"]
Lengths = Int[Tensor, " batch"]
Pooled = Float[Tensor, "batch width"]

# A comparison is a ramp of width 1 / STEEPNESS, not a jump: rounding must not decide about a step.
STEEPNESS = 8.0


def pool_path(path: Path, lengths: Lengths, threshold: Float[Tensor, " width"]) -> tuple[Pooled, Pooled]:
    """Share of the steps above a threshold, and the maximum, for every functional."""
    from seq2tens.ops._pooling_kernels import pool_path as kernel

    share, peak = (path.new_empty(path.shape[0], path.shape[2]) for _ in range(2))
    arrays = (path.contiguous().numpy(), lengths.numpy(), threshold.numpy())
    kernel(*arrays, _single(STEEPNESS), share.numpy(), peak.numpy())
    return share, peak


def pool_contest(path: Path, lengths: Lengths, groups: int) -> tuple[Pooled, Pooled]:
    """How high each functional is when it is the highest of its group, and how often it is the lowest.

    Functional k belongs to group k mod `groups`; both are means over time.
    """
    from seq2tens.ops._pooling_kernels import pool_contest as kernel

    wins, losses = (path.new_empty(path.shape[0], path.shape[2]) for _ in range(2))
    kernel(
        path.contiguous().numpy(), lengths.numpy(), groups, _single(STEEPNESS), wins.numpy(), losses.numpy()
    )
    return wins, losses


def _single(number: float) -> object:
    return torch.tensor(number).numpy()[()]
