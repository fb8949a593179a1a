"""Look-up of intervals in the tables, in operations of torch: the definition."""

from __future__ import annotations

from torch import Tensor

from seq2tens.ops.chains import Chains
from seq2tens.ops.intervals.parts import Parts, Rows
from seq2tens.ops.subwords import join


def look_up(parts: Parts, rows: Rows, chains: Chains) -> Tensor:
    """Return the levels of every interval, `(intervals, levels, width)`."""
    states = parts.ends.index_select(0, rows.end)
    for table, chosen in (
        (parts.stretches, rows.left),
        (parts.stretches, rows.right),
        (parts.beginnings, rows.beginning),
    ):
        states = join(states, table.index_select(0, chosen), None, chains)
    return states[:, list(chains.output)]
