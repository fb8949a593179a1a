"""What lies outside of a stack with shortcuts, as steps of its programs.

What enters the stack and what leaves it are sums of two normalised branches. There are three to be made here:
what is near, a linear map of the input, and a linear map of the mean of what is near over time. The fourth
comes from the last layer of the stack.

Bases beyond those of the stack: the input, the parameters OUTSIDE, running mean and variance of each branch.
The backward program also has the gradients of what is near, of the first linear map, and of the parameters.
"""

from __future__ import annotations

import math
from array import array
from typing import NamedTuple

import torch

from seq2tens.ops._plan_parts import (
    MASK,
    PARAMETERS,
    Memory,
    Place,
    X,
    Y,
    add_normalization,
    place_statistics,
)
from seq2tens.ops._program import Program
from seq2tens.ops.cpu import code
from seq2tens.ops.normalize import Settings

ENTERING, TO_START, TO_END = range(3)  # branches
OUTSIDE = (
    "weight", "bias", "matrix", "shift", "start_weight", "start_bias", "end_matrix", "end_shift",
    "end_weight", "end_bias",
)  # fmt: skip
OWN = (("weight", "bias"), ("start_weight", "start_bias"), ("end_weight", "end_bias"))  # of each branch
BASES = 1 + len(OUTSIDE) + 2 * len(OWN)
_WORTH_A_TASK = 2**15  # numbers, some 10 µs


class Shortcuts(NamedTuple):
    """How branches are normalised, with what their sums are multiplied, and the channels of the input."""

    norm: Settings
    features: int


class Branch(NamedTuple):
    """The shape of a branch, and the record of its normalisation."""

    shape: tuple[int, ...]
    settings: Settings
    norm: dict[str, Place]


class Ends(NamedTuple):
    """The record of the mean and the linear maps, sizes and addresses, and the branches."""

    sizes: dict[str, int]
    fields: dict[str, Place]
    branches: list[Branch]


def place_ends(
    arena: Memory,
    start: Place,
    x_shape: torch.Size,
    end: int,
    masked: bool,
    shortcuts: Shortcuts,
    depth: int,
) -> Ends:
    """Where all that is; the first sum is at `start`, and `end` numbers leave the stack."""
    batch, length, channels = x_shape
    first = PARAMETERS + 4 * depth
    parameters = {name: (first + 1 + i, 0) for i, name in enumerate(OUTSIDE)}
    fields = {
        "near": (X, 0), "x": (first, 0), "pooled": arena.take(batch * channels),
        "matrix": parameters["matrix"], "beside": arena.take(math.prod(x_shape)),
        "end_matrix": parameters["end_matrix"], "around": arena.take(batch * end),
    }  # fmt: skip
    if masked:
        fields["mask"] = (MASK, 0)
    sizes = {
        "batch": batch, "length": length, "channels": channels, "features": shortcuts.features, "end": end,
        "tasks": max(1, min(batch, batch * length * (channels + shortcuts.features) // _WORTH_A_TASK, 16)),
        "masked": masked, "scratch_size": -(-8 * channels // 64) * 64,
    }  # fmt: skip
    entering, around = arena.take(math.prod(x_shape)), arena.take(batch * end)
    alone, end_shape, running = shortcuts.norm._replace(scale=1.0), (batch, end), first + 1 + len(OUTSIDE)
    branches = []
    for number, (shape, settings, x, y) in enumerate(
        (
            (x_shape, alone, fields["near"], entering),
            (x_shape, shortcuts.norm, fields["beside"], start),
            (end_shape, alone, fields["around"], around),
        )
    ):
        weight, bias = (parameters[name] for name in OWN[number])
        norm = {"x": x, "y": y, "weight": weight, "bias": bias}
        norm |= place_statistics(arena, shape[-1], running + 2 * number)
        if number != ENTERING:
            norm["shift"] = parameters["shift" if number == TO_START else "end_shift"]
        if masked and number != TO_END:
            norm["mask"] = (MASK, 0)
        if number == TO_START:
            norm["addend"] = entering
        branches.append(Branch(tuple(shape), settings, norm))
    return Ends(sizes, fields, branches)


def add_forward(program: Program, ends: Ends, dtype: torch.dtype) -> None:
    """All three branches, the first two as their sum."""
    _add_maps(program, "forward", ends, {}, dtype)
    for shape, settings, norm in ends.branches:
        add_normalization(program, "forward", shape, settings, norm, dtype)


def add_backward(
    program: Program, ends: Ends, dstart: Place, base: int, scratch: Memory, dtype: torch.dtype
) -> None:
    """The adjoint; bases of gradients begin at `base`, and the factor of a sum is that of both branches."""
    batch, channels, end = (ends.sizes[name] for name in ("batch", "channels", "end"))
    parameters = {name: (base + 2 + i, 0) for i, name in enumerate(OUTSIDE)}
    values = {"dnear": (base, 0), "dbeside": (base + 1, 0), "daround": scratch.take(batch * end)}
    settings = ends.branches[TO_START].settings
    for number, (branch, dx) in enumerate(zip(ends.branches, values.values(), strict=True)):
        weight, bias = (parameters[name] for name in OWN[number])
        gradients = {"dy": (Y, 0) if number == TO_END else dstart, "dx": dx, "dweight": weight, "dbias": bias}
        add_normalization(program, "backward", branch.shape, settings, {**branch.norm, **gradients}, dtype)
    maps = {f"d{name}": parameters[name] for name in ("matrix", "shift", "end_matrix", "end_shift")}
    gradients = {**values, **maps, "dpooled": scratch.take(batch * channels)}
    _add_maps(program, "backward", ends, gradients, dtype)


def _add_maps(
    program: Program, name: str, ends: Ends, gradients: dict[str, Place], dtype: torch.dtype
) -> None:
    """The mean over time and both linear maps."""
    from seq2tens.ops._ends_kernels import AT, FIELDS, entry

    gemm, limit_threads, _ = code(name, dtype)
    known = {**ends.sizes, "gemm": gemm, "limit_threads": limit_threads}
    record = program.record(array("q", [int(known.get(field, 0)) for field in FIELDS]))
    for field, place in {**ends.fields, **gradients}.items():
        program.link(record + AT[field], *place)
    program.step(entry(f"{name}{8 * dtype.itemsize}").address, record, known["tasks"], AT)
