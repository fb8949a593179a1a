"""Linear recurrences along time, and traces with covariances that such a recurrence generates.

The time axis is the last but one. It is cut into blocks of about √L steps, so that one loop runs over the
steps of all blocks at once and another over the blocks. All formulas use sums and products, never quotients
of cumulative products, which would underflow or overflow on long sequences.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as torch_F

Steps = Float[Tensor, "*batch time latent"]
Blocks = Float[Tensor, "*batch blocks steps latent"]

SMALLEST_BLOCK = 16  # with smaller blocks, a plain loop over the steps is faster


def backward_recurrence(ratio: Float[Tensor, "*shared time latent"], input: Steps) -> Steps:
    """Solve x_i = u_i + r_i x_{i+1} from the last step to the first in O(L); the last ratio has no effect."""
    time = input.shape[-2]
    ratio, input = (_blocks(t, block_size(time)) for t in torch.broadcast_tensors(ratio, input))
    within, reach = _solve_blocks(ratio, input)
    return (within + reach * _incoming(within, reach)).flatten(-3, -2)[..., :time, :]


def trace_of_product(
    matrix: Float[Tensor, "time time"],
    variance: Float[Tensor, "batch time latent"],
    ratio: Float[Tensor, "batch time latent"],
) -> Float[Tensor, "batch latent"]:
    """Return tr(P A) for a symmetric P and A_ij = A_jj r_i ⋯ r_{j-1} (i < j), in O(L²), without forming A.

    Pairs of steps in one block are summed by their distance. For pairs in different blocks, the product
    splits at the end of the block of i, and a matrix product computes the sum.
    """
    time = variance.shape[-2]
    size = block_size(time)
    within = _trace_within_blocks(matrix, variance, ratio, size)
    return within if size >= time else within + 2 * _trace_between_blocks(matrix, variance, ratio, size)


def block_size(time: int) -> int:
    """Return the number of steps per block, which balances both loops."""
    return min(time, max(SMALLEST_BLOCK, math.isqrt(time)))


def _blocks(x: Tensor, size: int) -> Blocks:
    padding = -x.shape[-2] % size
    return torch_F.pad(x, (0, 0, 0, padding)).unflatten(-2, (-1, size))


def _solve_blocks(ratio: Blocks, input: Blocks) -> tuple[Blocks, Blocks]:
    """Solve the recurrence in each block, starting from 0; also return the factors of the incoming value."""
    ratios, inputs = ratio.unbind(-2), input.unbind(-2)
    within, reach = [inputs[-1]], [ratios[-1]]
    for r, u in zip(ratios[-2::-1], inputs[-2::-1], strict=True):
        within.append(u + r * within[-1])
        reach.append(r * reach[-1])
    return torch.stack(within[::-1], dim=-2), torch.stack(reach[::-1], dim=-2)


def _incoming(within: Blocks, reach: Blocks) -> Float[Tensor, "*batch blocks 1 latent"]:
    """Return the value that enters each block from the one after it."""
    starts, factors = within[..., 0, :].unbind(-2), reach[..., 0, :].unbind(-2)
    carried = [torch.zeros_like(starts[-1])]
    for start, factor in zip(starts[:0:-1], factors[:0:-1], strict=True):
        carried.append(start + factor * carried[-1])
    return torch.stack(carried[::-1], dim=-2)[..., None, :]


def _trace_within_blocks(matrix: Tensor, variance: Tensor, ratio: Tensor, size: int) -> Tensor:
    time = variance.shape[-2]
    ends = torch.arange(time, device=ratio.device) % size == size - 1
    inside = ratio.masked_fill(ends[:, None], 0.0)  # no product leaves its block
    total = (matrix.diagonal()[:, None] * variance).sum(-2)
    product = inside
    for distance in range(1, size):
        product = product[..., : time - distance, :]
        weighted = 2 * matrix.diagonal(distance)[:, None] * variance[..., distance:, :]
        total = total + (product * weighted).sum(-2)
        product = product * inside[..., distance:, :]
    return total


def _trace_between_blocks(matrix: Tensor, variance: Tensor, ratio: Tensor, size: int) -> Tensor:
    """Return the sum of P_ij A_ij over i < j in different blocks."""
    time = variance.shape[-2]
    blocks = _blocks(ratio, size)
    to_end = _solve_blocks(blocks, torch.zeros_like(blocks))[1]
    from_start = _products_before(blocks).flatten(-3, -2)[..., :time, :]
    weighted = from_start * variance
    total = torch.zeros_like(variance[..., 0, :])
    reaching = to_end[..., 0, :, :]
    for start in range(size, time, size):
        stop = min(start + size, time)
        row_products = matrix[start:stop, :start] @ reaching
        total = total + (row_products * weighted[..., start:stop, :]).sum(-2)
        ends = to_end[..., start // size, :, :]
        reaching = torch.cat([reaching * ends[..., :1, :], ends], dim=-2)
    return total


def _products_before(ratio: Blocks) -> Blocks:
    """Return r_s ⋯ r_{j-1} for each step j of a block that starts with s."""
    products = [torch.ones_like(ratio[..., 0, :])]
    for r in ratio.unbind(-2)[:-1]:
        products.append(products[-1] * r)
    return torch.stack(products, dim=-2)
