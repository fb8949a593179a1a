"""Parts of the programs for a stack: places in memory, and the step that normalises."""

from __future__ import annotations

import torch

from seq2tens.ops._program import Program
from seq2tens.ops.normalize import Settings, address, layout_of

Place = tuple[int, int]  # number of a base, and an offset in bytes
# bases of both programs of a stack: these, then weight and bias of every layer, then the running mean and
# variance of every layer, then, with shortcuts, those that `_ends_plan` describes
ARENA, ZEROS, Y, X, MASK, PARAMETERS = range(6)
FORWARD_ONLY = ("y", "bias", "addend", "running_mean", "running_variance", "shift")


class Memory:
    """Parts of one piece of memory, each from a cache line on."""

    def __init__(self, base: int, itemsize: int) -> None:
        self.base, self.itemsize, self.size = base, itemsize, 0

    def take(self, count: int, itemsize: int | None = None) -> Place:
        """Room for `count` numbers."""
        place = self.base, self.size
        self.size += -(-count * (itemsize or self.itemsize) // 64) * 64
        return place


def place_statistics(arena: Memory, channels: int, running: int) -> dict[str, Place]:
    """Mean and variance of a batch, and the bases of those that follow them."""
    return {
        "mean": arena.take(channels), "variance": arena.take(channels), "running_mean": (running, 0),
        "running_variance": (running + 1, 0),
    }  # fmt: skip


def add_normalization(
    program: Program,
    name: str,
    shape: tuple[int, ...],
    settings: Settings,
    fields: dict[str, Place],
    dtype: torch.dtype,
) -> None:
    """The step `name`, forward or backward; `fields` are those of its record that are addresses."""
    scaled = "weight" in fields
    layout = layout_of(torch.Size(shape), settings, "mask" in fields, scaled, scaled)
    record = program.record(layout.record)
    program.keep(layout)
    unread = FORWARD_ONLY if name == "backward" else ()
    for field, place in fields.items():
        if field not in unread:
            program.link(record + layout.at[field], *place)
    program.words[record + layout.at["summed"]] = name == "forward" and "addend" in fields
    program.step(address(name, dtype), record, layout.tasks, layout.at)
