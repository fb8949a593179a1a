"""Sums, means and softmax over groups of entries of a list, such as the observations of each sequence."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor


def segment_sum(
    entries: Float[Tensor, "entries width"], groups: Int[Tensor, " entries"], n_groups: int
) -> Float[Tensor, "groups width"]:
    """Return the sum of the entries of each group, 0 for an empty group."""
    return entries.new_zeros(n_groups, entries.shape[1]).index_add(0, groups, entries)


def segment_mean(
    entries: Float[Tensor, "entries width"], groups: Int[Tensor, " entries"], n_groups: int
) -> Float[Tensor, "groups width"]:
    """Return the mean of the entries of each group, 0 for an empty group."""
    counts = torch.bincount(groups, minlength=n_groups).clamp(min=1)
    return segment_sum(entries, groups, n_groups) / counts[:, None]


def segment_exp(
    logits: Float[Tensor, "entries width"], groups: Int[Tensor, " entries"], n_groups: int
) -> tuple[Float[Tensor, "entries width"], Float[Tensor, "groups width"]]:
    """Return exponentials divided by the largest of their group, and the logarithm of that divisor.

    Weighted means do not depend on the divisor, which prevents overflow and underflow. Its logarithm is 0 for
    an empty group.
    """
    top = logits.new_full((n_groups, logits.shape[1]), -torch.inf)
    top = top.scatter_reduce(0, groups[:, None].expand_as(logits), logits.detach(), "amax")
    top = torch.where(top.isinf(), 0.0, top)
    return torch.exp(logits - top[groups]), top


def segment_softmax(
    logits: Float[Tensor, "entries width"], groups: Int[Tensor, " entries"], n_groups: int
) -> Float[Tensor, "entries width"]:
    """Return softmax weights, which sum to 1 over each group."""
    weights, _ = segment_exp(logits, groups, n_groups)
    return weights / segment_sum(weights, groups, n_groups)[groups]
