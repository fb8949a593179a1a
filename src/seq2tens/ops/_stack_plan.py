"""Programs for a stack of normalised LS2T layers: what is computed where, once for each shape.

With shortcuts, what enters the stack and what leaves it are sums of two normalised branches.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from seq2tens.ops import _program
from seq2tens.ops._calls import AT
from seq2tens.ops._program import Program
from seq2tens.ops._tasks import Key, Layout, make_layout
from seq2tens.ops.chains import Chains
from seq2tens.ops.cpu import code
from seq2tens.ops.normalize import Settings, address, layout_of

Sizes = tuple[tuple[torch.Size, bool], ...]  # of each layer: the weight's shape, and whether it has a bias
# bases of both programs: these, then weight and bias of every layer, then mean and variance of every layer;
# with shortcuts then the FIELDS of three branches: what enters, the shortcut to it, the one around the stack
ARENA, ZEROS, Y, X, MASK, PARAMETERS = range(6)
FIELDS = ("x", "weight", "bias", "mean", "variance")
ENTERING, TO_START, TO_END = range(3)


class Options(NamedTuple):
    """What a layer computes: its chains, levels of all steps or of the last, and how they are normalised."""

    chains: Chains
    return_sequences: bool
    norm: Settings


class Plan(NamedTuple):
    """Two programs, and the sizes of the memory that they share."""

    options: tuple[Options, ...]
    forward: Program
    backward: Program
    kept: int  # numbers that the forward pass leaves for the backward one
    passing: int  # numbers that the backward pass needs
    out_shape: tuple[int, ...]
    statistics: list[int]  # a mean and a variance per layer
    parameters: list[tuple[int, ...]]  # a weight and a bias per layer
    zeros: Tensor
    shortcuts: Settings | None


class Memory:
    """Parts of one piece of memory, each from a cache line on."""

    def __init__(self, base: int, itemsize: int) -> None:
        self.base, self.itemsize, self.size = base, itemsize, 0

    def take(self, count: int, itemsize: int | None = None) -> tuple[int, int]:
        """Base and offset of room for `count` numbers."""
        place = self.base, self.size
        self.size += -(-count * (itemsize or self.itemsize) // 64) * 64
        return place


class _Layer(NamedTuple):
    """Where the parts of a layer are, each a base and an offset."""

    layout: Layout
    option: Options
    shape: tuple[int, ...]  # of the levels
    x: tuple[int, int]
    levels: tuple[int, int]
    fields: dict[str, tuple[int, int]]  # of the record of the recursion
    settings: Settings
    norm: dict[str, tuple[int, int]]  # of the record of the normalisation


class _Branch(NamedTuple):
    """What a branch of a sum is before it is normalised, and the record of its normalisation."""

    shape: tuple[int, ...]
    settings: Settings
    norm: dict[str, tuple[int, int]]


@lru_cache(maxsize=256)
def make_plan(
    x_shape: torch.Size,
    dtype: torch.dtype,
    masked: bool,
    sizes: Sizes,
    options: tuple[Options, ...],
    shortcuts: Settings | None = None,
) -> Plan | None:
    """The plan, or None where the layers are not such as the programs can do.

    These are layers of one chain, whose functionals fill whole vectors. `shortcuts` tells how their branches
    are normalised, and what the sums are multiplied with.
    """
    plain = all(_is_plain(shape, option.chains) for (shape, _), option in zip(sizes, options, strict=True))
    if not plain or dtype not in (torch.float32, torch.float64) or 0 in x_shape or not _program.can_run():
        return None
    layers, branches, kept = _place(x_shape, dtype, masked, sizes, options, shortcuts)
    if any(layer.layout.plan.groups > 1 for layer in layers):
        return None
    backward, passing = _backward_program(layers, branches, dtype)
    parameters = [size for shape, _ in sizes for size in (tuple(shape), (shape[0], shape[2]))]
    zeros = max(x_shape[0] * math.prod(bias) for bias in parameters[1::2])
    return Plan(
        options=options,
        forward=_forward_program(layers, branches, dtype),
        backward=backward,
        kept=kept // dtype.itemsize,
        passing=passing // dtype.itemsize,
        out_shape=(*layers[-1].shape[:-2], layers[-1].shape[-2] * layers[-1].shape[-1]),
        statistics=[shape[0] for shape, _ in sizes for _ in range(2)],
        parameters=parameters,
        zeros=torch.zeros(zeros, dtype=dtype),
        shortcuts=shortcuts,
    )


def _is_plain(shape: torch.Size, chains: Chains) -> bool:
    """Whether there is one chain in whole vectors."""
    levels = tuple(range(shape[0]))
    return chains == Chains(levels, tuple(m - 1 for m in levels), levels) and shape[2] % 16 == 0


def _place(
    x_shape: torch.Size,
    dtype: torch.dtype,
    masked: bool,
    sizes: Sizes,
    options: tuple[Options, ...],
    shortcuts: Settings | None,
) -> tuple[list[_Layer], list[_Branch], int]:
    """Where everything is that the backward pass needs, and how much memory that takes."""
    arena = Memory(ARENA, dtype.itemsize)
    if shortcuts is None:
        layers = _place_layers(arena, (X, 0), x_shape, masked, sizes, options)
        return layers, [], arena.size
    start = arena.take(math.prod(x_shape))
    layers = _place_layers(arena, start, x_shape, masked, sizes, options)
    end_shape = x_shape[0], math.prod(layers[-1].shape[-2:])
    branches = _place_branches(arena, start, x_shape, end_shape, masked, shortcuts, len(sizes))
    last = layers[-1]
    sum_of_ends = {**last.norm, "addend": branches[TO_END].norm["y"]}
    settings = last.settings._replace(scale=shortcuts.scale)
    return [*layers[:-1], last._replace(norm=sum_of_ends, settings=settings)], branches, arena.size


def _place_layers(
    arena: Memory,
    x: tuple[int, int],
    x_shape: torch.Size,
    masked: bool,
    sizes: Sizes,
    options: tuple[Options, ...],
) -> list[_Layer]:
    layers = list[_Layer]()
    batch, time, features = x_shape
    for i, ((shape, biased), option) in enumerate(zip(sizes, options, strict=True)):
        sequences = option.return_sequences
        key = Key(
            (batch, time, features), tuple(shape), option.chains, 1, False, biased, masked,
            False, sequences, True, True,
        )  # fmt: skip
        layout = make_layout(key)
        order, _, width = shape
        steps = (batch, time) if sequences else (batch,)
        size = math.prod(steps) * order * width
        final = arena.take(batch * order * width)
        levels = arena.take(size) if sequences else final
        record = layout.record
        weight, statistics = PARAMETERS + 2 * i, PARAMETERS + 2 * len(sizes) + 2 * i
        fields = {
            "x": x, "mask": (MASK, 0), "state": (ZEROS, 0), "final": final, "out": levels,
            "given_weight": (weight, 0), "bias": (weight + 1, 0) if biased else (ZEROS, 0),
            "weight": arena.take(math.prod(shape)), "kept": arena.take(record[AT["kept_size"]], 8),
            "products": arena.take(batch * time * order * width),
        }  # fmt: skip
        y = (Y, 0) if i == len(sizes) - 1 else arena.take(size)
        norm = {"x": levels, "mean": (statistics, 0), "variance": (statistics + 1, 0), "y": y}
        if masked and sequences:
            norm["mask"] = (MASK, 0)
        layers.append(_Layer(layout, option, (*steps, order, width), x, levels, fields, option.norm, norm))
        x, features = y, order * width
    return layers


def _place_branches(
    arena: Memory,
    start: tuple[int, int],
    x_shape: torch.Size,
    end_shape: tuple[int, ...],
    masked: bool,
    settings: Settings,
    depth: int,
) -> list[_Branch]:
    """The three normalised branches; the first sum is at `start`, the second is made by the last layer."""
    entering, around = arena.take(math.prod(x_shape)), arena.take(math.prod(end_shape))
    alone = settings._replace(scale=1.0)
    branches = []
    for number, (shape, y, own) in enumerate(
        ((x_shape, entering, alone), (x_shape, start, settings), (end_shape, around, alone))
    ):
        base = PARAMETERS + 4 * depth + number * len(FIELDS)
        norm = {name: (base + i, 0) for i, name in enumerate(FIELDS)} | {"y": y}
        if masked and number != TO_END:
            norm["mask"] = (MASK, 0)
        if number == TO_START:
            norm["addend"] = entering
        branches.append(_Branch(tuple(shape), own, norm))
    return branches


def _forward_program(layers: list[_Layer], branches: list[_Branch], dtype: torch.dtype) -> Program:
    program = Program()
    for branch in branches:
        _normalization(program, branch, "forward", branch.norm, dtype)
    for layer in layers:
        record = _recursion(program, layer, layer.fields)
        tasks = layer.layout.plan.tasks
        program.step(code("regroup", dtype)[2], record, tasks, AT)
        program.step(_set_code(program, record, "forward", dtype), record, tasks, AT)
        _normalization(program, layer, "forward", layer.norm, dtype)
    return program


def _backward_program(
    layers: list[_Layer], branches: list[_Branch], dtype: torch.dtype
) -> tuple[Program, int]:
    """The program, and how much memory it needs between its steps.

    Its own bases: scratch, the gradients of what enters and of all parameters of layers; then of each branch
    the gradients of values, weight and bias.
    """
    first = PARAMETERS + 4 * len(layers) + len(FIELDS) * len(branches)
    scratch, dx_base, gradients = Memory(first, dtype.itemsize), first + 1, first + 2
    program, dy = Program(), (Y, 0)
    for i, layer in reversed(list(enumerate(layers))):
        plan, fields = layer.layout.plan, layer.fields
        (order, width), size = layer.shape[-2:], math.prod(layer.shape)
        record = layer.layout.record
        features = record[AT["features"]]
        dlevels = scratch.take(size)
        _normalization(
            program, layer, "backward",
            {
                **layer.norm, "dy": dy, "dx": dlevels,
                "dweight": scratch.take(order), "dbias": scratch.take(order),
            },
            dtype,
        )  # fmt: skip
        steps = record[AT["batch"]] * record[AT["length"]]
        dx = scratch.take(steps * features) if i > 0 or branches else (dx_base, 0)
        place = _recursion(
            program,
            layer,
            {
                **fields,
                "out": dlevels,
                "final": (ZEROS, 0) if layer.option.return_sequences else dlevels,
                "state": scratch.take(record[AT["state_size"]]),
                "path": layer.levels,
                "dx": dx,
                "dweight": scratch.take(plan.tasks * features * order * width),
                "dbias": scratch.take(plan.tasks * order * width, 8),
                "weight_total": (gradients + 2 * i, 0),
                "bias_total": (gradients + 2 * i + 1, 0),
            },
        )
        program.step(_set_code(program, place, "backward", dtype), place, plan.tasks, AT)
        program.step(code("totals", dtype)[2], place, plan.tasks, AT)
        dy = dx
    _add_branches(program, branches, dy, gradients + 2 * len(layers), dtype)
    return program, scratch.size


def _add_branches(
    program: Program, branches: list[_Branch], dstart: tuple[int, int], base: int, dtype: torch.dtype
) -> None:
    """Backward steps of the branches; the factor of a sum is that of both its branches."""
    for number, branch in enumerate(branches):
        first = base + 3 * number
        gradients = {"dx": (first, 0), "dweight": (first + 1, 0), "dbias": (first + 2, 0)}
        dy = {"dy": (Y, 0) if number == TO_END else dstart}
        scaled = branch._replace(settings=branches[TO_START].settings)
        _normalization(program, scaled, "backward", {**branch.norm, **dy, **gradients}, dtype)


def _recursion(program: Program, layer: _Layer, fields: dict[str, tuple[int, int]]) -> int:
    record = program.record(layer.layout.record)
    for name, place in fields.items():
        program.link(record + AT[name], *place)
    return record


def _set_code(program: Program, record: int, name: str, dtype: torch.dtype) -> int:
    """Put the matrix product into a record; return the address of the kernel."""
    gemm, limit_threads, entry = code(name, dtype)
    program.words[record + AT["gemm"]], program.words[record + AT["limit_threads"]] = gemm, limit_threads
    return entry


def _normalization(
    program: Program,
    part: _Layer | _Branch,
    name: str,
    fields: dict[str, tuple[int, int]],
    dtype: torch.dtype,
) -> None:
    scaled = "weight" in fields
    layout = layout_of(torch.Size(part.shape), part.settings, "mask" in fields, scaled, scaled)
    record = program.record(layout.record)
    program.keep(layout)
    unread = ("y", "bias", "addend") if name == "backward" else ()
    for field, place in fields.items():
        if field not in unread:
            program.link(record + layout.at[field], *place)
    program.words[record + layout.at["summed"]] = name == "forward" and "addend" in fields
    program.step(address(name, dtype), record, layout.tasks, layout.at)
