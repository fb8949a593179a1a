"""Conversion from and to torch's `PackedSequence`."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from seq2tens import _checks as check


def unpack(packed: PackedSequence, mask: object, lengths: object) -> tuple[Tensor, Int[Tensor, " batch"]]:
    """Return the padded sequences, batch first, and their lengths; `mask` and `lengths` must be None."""
    check.require(mask is None and lengths is None, "`mask` and `lengths` must be None for a PackedSequence")
    x, counts = pad_packed_sequence(packed, batch_first=True)
    return x, counts.to(x.device)


def repack(output: Tensor, like: PackedSequence) -> PackedSequence:
    """Pack `output` in the same way as `like`, so that both correspond element by element."""
    batch_sizes = like.batch_sizes
    lengths = (batch_sizes[None] > torch.arange(int(batch_sizes[0]))[:, None]).sum(1)
    if like.sorted_indices is not None:
        output = output.index_select(0, like.sorted_indices)
    packed = pack_padded_sequence(output, lengths, batch_first=True)
    return PackedSequence(packed.data, packed.batch_sizes, like.sorted_indices, like.unsorted_indices)
