"""Pooling along time: summaries of convolutions, and of functionals of their order, without their paths."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor

from seq2tens.ops import dispatch
from seq2tens.ops.pooling import cpu, reference
from seq2tens.ops.pooling.reference import Comparison, functionals, inside, pool_path, pool_paths

dispatch.register("pool_blocks", "cpu", cpu.pool_blocks, cpu.unsupported)
dispatch.register("pool_blocks", "reference", reference.pool_blocks, dispatch.always_supported)

__all__ = ["POOLS", "Blocks", "Comparison", "functionals", "inside", "pool_blocks", "pool_path", "pool_paths"]

# Pools of the convolutions, in the order of the result. The shares of the levels follow, then their energies.
POOLS = ("share", "stretch", "changes", "wins", "losses")


class Blocks(NamedTuple):
    """Blocks of `width` convolutions, and of as many functionals of each level on top of them.

    Functional k of a block decays by `decay[k]` per step. At level m it is paired with convolution
    `picks[m, k]` times `gains[m, k]`.
    """

    source: Int[Tensor, " blocks"]  # number of the path that a block reads
    channels: Int[Tensor, "blocks chosen"]
    dilation: Int[Tensor, " blocks"]
    taps: Float[Tensor, "blocks taps chosen width"]
    picks: Int[Tensor, "blocks order width"]
    gains: Float[Tensor, "blocks order width"]
    decay: Float[Tensor, "blocks width"]
    threshold: Float[Tensor, "blocks width"]


def pool_blocks(
    paths: Float[Tensor, "sources batch time channels"],
    lengths: Int[Tensor, " batch"],
    blocks: Blocks,
    groups: int,
    steepness: float,
) -> Float[Tensor, "batch blocks pools width"]:
    """Pool dilated convolutions, centred at each step, and the functionals on top of them, over time.

    Every sequence must have at least one step; steps beyond `lengths` count as zeros. A comparison with a
    threshold is a ramp of width 1 / steepness instead of a jump, so that rounding does not decide a step.

    Of the convolutions: `share` of the steps above the threshold; longest `stretch` of such steps, as a
    fraction of all steps; `changes`, crossings of the threshold per step; and a contest, in which convolution
    k is in group k mod `groups`: `wins`, how high it is while highest, and `losses`, how often it is the
    lowest. Of the levels: the share of steps above 0 for each but the first, then the energy, the mean
    square, for each.
    """
    pooled: Tensor = dispatch.run("pool_blocks", None, paths, lengths, blocks, groups, steepness)
    return pooled
