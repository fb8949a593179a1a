"""Alignment of sequences of unequal length in one tensor: valid steps first, then zeros."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from seq2tens import _checks as check
from seq2tens.functional import Series

Mask = Bool[Tensor, "batch time"]
Source = Int[Tensor, "batch time"]


def align(
    x: Series, mask: Mask | None, lengths: check.Lengths | None
) -> tuple[Series, Mask | None, Source | None]:
    """Move the valid steps to the front of their sequences, in their order; zeros follow.

    The caller has checked that `x` is a batch of sequences.
    Returns the sequences, their mask and, for `restore`, the original position of each step. After alignment,
    neighbours in the tensor are neighbours in the sequence, as if there had been no invalid steps.
    """
    check.not_empty("x", x)
    valid = check.step_mask(x, mask, lengths)
    if valid is None:
        return x, None, None
    source = None
    if mask is not None:  # with lengths alone, the valid steps come first already
        source = valid.byte().argsort(dim=1, descending=True, stable=True)
        valid = valid.gather(1, source)
        x = x.gather(1, source[..., None].expand_as(x))
    return torch.where(valid[..., None], x, 0.0), valid, source


def restore(y: Tensor, source: Source | None) -> Tensor:
    """Move the steps back to their original positions, undoing `align`."""
    if source is None:
        return y
    return y.scatter(1, source.view(*source.shape, *[1] * (y.dim() - 2)).expand_as(y), y)
