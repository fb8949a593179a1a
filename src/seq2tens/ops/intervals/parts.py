"""The parts of any interval: suffixes and prefixes of blocks of steps, and stretches of whole blocks."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2tens.ops.chains import Chains
from seq2tens.ops.subwords import join


class Parts(NamedTuple):
    """Tables with one row for every step or block of every sequence.

    For each step, `ends` holds the values of the steps from it to the end of its block, for the states of the
    chains, and `beginnings` those from the beginning of the block up to it, for all subwords. `stretches`
    holds the values of consecutive whole blocks, see `make_stretches`.
    """

    ends: Float[Tensor, "steps states width"]
    stretches: Float[Tensor, "stretches words width"]
    beginnings: Float[Tensor, "steps words width"]


class Rows(NamedTuple):
    """The rows of the tables that make up each interval: the end of a block, two stretches, a beginning."""

    end: Int[Tensor, " intervals"]
    left: Int[Tensor, " intervals"]
    right: Int[Tensor, " intervals"]
    beginning: Int[Tensor, " intervals"]


def make_stretches(values: Float[Tensor, "batch blocks words width"], chains: Chains) -> Tensor:
    """Return the values of a stretch of blocks for each block and each power 2^k below the number of blocks.

    If bit k of the block's number is 1, the stretch begins at the last multiple of 2^k and ends with the
    block. If the bit is 0, it begins with the block and ends before the next multiple. Rows are ordered by k,
    sequence and block; one more row at the end stands for an empty stretch.
    """
    number = torch.arange(values.shape[1], device=values.device)
    before = after = values
    tables = []
    for k in range(max(1, (len(number) - 1).bit_length())):
        second = (number >> k) % 2 == 1
        tables.append(torch.where(second[:, None, None], before, after).flatten(0, 1))
        later = number[second]
        border = ((later >> k) << k) - 1
        longer = join(before.index_select(1, border), before.index_select(1, later), None, chains)
        before = before.index_copy(1, later, longer)
        border = ((number >> k) + 1) << k
        inside = ~second & (border < len(number))
        earlier, border = number[inside], border[inside]
        longer = join(after.index_select(1, earlier), after.index_select(1, border), None, chains)
        after = after.index_copy(1, earlier, longer)
    return torch.cat([*tables, values.new_zeros(1, *values.shape[2:])])
