"""Values of beginnings and ends of blocks of steps, and of stretches of blocks: the parts of any interval."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2tens.ops.chains import Chains
from seq2tens.ops.subwords import join


class Parts(NamedTuple):
    """Tables with one row for every step or block of every sequence.

    `ends` holds the values of the steps from one to the end of its block, on the states of the chains;
    `beginnings` those of the steps from the beginning of a block up to one, on all words; `stretches` those
    of whole blocks, see `make_stretches`.
    """

    ends: Float[Tensor, "steps states width"]
    stretches: Float[Tensor, "stretches words width"]
    beginnings: Float[Tensor, "steps words width"]


class Rows(NamedTuple):
    """The rows of the tables that make up each interval: an end, two stretches and a beginning."""

    end: Int[Tensor, " intervals"]
    left: Int[Tensor, " intervals"]
    right: Int[Tensor, " intervals"]
    beginning: Int[Tensor, " intervals"]


def make_stretches(values: Float[Tensor, "batch blocks words width"], chains: Chains) -> Tensor:
    """For each power of two below the number of blocks, and each block, the values of a stretch of blocks.

    Where bit k of a block's number is 1 it begins at the last border of 2^k blocks and ends with the block;
    where it is 0 it begins with the block and ends at the next border. Rows are numbered by k, sequence and
    block, and the last one is nothing at all.
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
