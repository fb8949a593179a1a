"""Functionals of a lift with arbitrary tensors as levels, as sums of functionals of the concatenated levels.

A step may be paired with a run of j = b - a consecutive vectors z_(a+1), …, z_b, with the value
⟨z_(a+1) ⊗ … ⊗ z_b, φ_j⟩. This is linear in the levels of φ, so a run acts as one vector on the concatenated
levels. The value of z_1 ⊗ … ⊗ z_m is a sum over all 2^(m-1) ways to cut it into runs. Each term is a chain
of such vectors, which `ls2t` computes with the lift 1 + x.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

Runs = tuple[int, ...]  # lengths of the runs of vectors that a word is cut into


def cut_into_runs(
    weight: Float[Tensor, "order features width"],
    bias: Float[Tensor, "order width"] | None,
    longest: int,
) -> tuple[Float[Tensor, "order sizes columns"], Float[Tensor, "order columns"]]:
    """Return weight and bias for `ls2t` on the flattened and concatenated levels 1, …, `longest` of a lift.

    `weight` is recursive. `bias` is the weight of a constant coordinate of level 1. There are `width` columns
    for each way to cut each word; `sum_runs` adds their values.
    """
    order, features, _ = weight.shape
    sizes = [features**j for j in range(1, longest + 1)]
    chains = [_chain(cut, weight, bias, sizes) for cut in _all_cuts(order, longest)]
    vectors, constants = zip(*chains, strict=True)
    return torch.cat(vectors, dim=2), torch.cat(constants, dim=1)


def sum_runs(
    values: Float[Tensor, "*steps order columns"], longest: int
) -> Float[Tensor, "*steps order width"]:
    """Return the levels of the functionals from the output of `ls2t` with the weights of `cut_into_runs`."""
    order = values.shape[-2]
    cuts = _all_cuts(order, longest)
    values = values.unflatten(-1, (len(cuts), -1))
    ends = torch.stack([values[..., len(cut) - 1, c, :] for c, cut in enumerate(cuts)], dim=-2)
    sizes = [len(_cuts(m, longest)) for m in range(1, order + 1)]
    return torch.stack([part.sum(-2) for part in ends.split(sizes, dim=-2)], dim=-2)


def _all_cuts(order: int, longest: int) -> list[Runs]:
    return [cut for m in range(1, order + 1) for cut in _cuts(m, longest)]


def _cuts(vectors: int, longest: int) -> list[Runs]:
    """Return all ways to cut `vectors` vectors into runs of at most `longest`."""
    if vectors == 0:
        return [()]
    first = range(1, min(vectors, longest) + 1)
    return [(j, *rest) for j in first for rest in _cuts(vectors - j, longest)]


def _chain(cut: Runs, weight: Tensor, bias: Tensor | None, sizes: list[int]) -> tuple[Tensor, Tensor]:
    """Return the vectors and the biases of the runs of a cut, padded with zeros up to the order."""
    vectors, constants, start = [], [], 0
    for length in cut:
        before, after = sum(sizes[: length - 1]), sum(sizes[length:])
        vectors.append(pad(_outer(weight[start : start + length]), (0, 0, before, after)))
        zero = weight.new_zeros(weight.shape[2])
        constants.append(zero if bias is None or length > 1 else bias[start])
        start += length
    missing = weight.shape[0] - len(cut)
    rows, biases = torch.stack(vectors), torch.stack(constants)
    return pad(rows, (0, 0, 0, 0, 0, missing)), pad(biases, (0, 0, 0, missing))


def _outer(vectors: Float[Tensor, "length features width"]) -> Float[Tensor, "size width"]:
    """Return z_1 ⊗ z_2 ⊗ …, flattened."""
    product = vectors[0]
    for vector in vectors[1:]:
        product = (product[:, None] * vector).flatten(0, 1)
    return product
