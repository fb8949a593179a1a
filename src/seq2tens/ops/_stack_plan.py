"""Programs for a stack of normalised LS2T layers: what is computed where, once for each shape.

With shortcuts, what enters the stack and what leaves it are sums of two normalised branches.
"""

from __future__ import annotations

import math
from array import array
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
# with shortcuts then where the first one begins, parameters OUTSIDE of the stack, and mean and variance of
# three branches: what enters, the shortcut to it, the one around the stack
ARENA, ZEROS, Y, X, MASK, PARAMETERS = range(6)
ENTERING, TO_START, TO_END = range(3)
OUTSIDE = (
    "weight", "bias", "matrix", "shift", "start_weight", "start_bias", "end_matrix", "end_shift",
    "end_weight", "end_bias",
)  # fmt: skip
OWN = (("weight", "bias"), ("start_weight", "start_bias"), ("end_weight", "end_bias"))  # of each branch
_WORTH_A_TASK = 2**15  # numbers, some 10 µs


class Options(NamedTuple):
    """What a layer computes: its chains, levels of all steps or of the last, and how they are normalised."""

    chains: Chains
    return_sequences: bool
    norm: Settings


class Shortcuts(NamedTuple):
    """How branches are normalised, with what their sums are multiplied, and the channels of the input."""

    norm: Settings
    features: int


class Plan(NamedTuple):
    """Two programs, and the sizes of the memory that they share."""

    options: tuple[Options, ...]
    forward: Program
    backward: Program
    kept: int  # numbers that the forward pass leaves for the backward one
    passing: int  # numbers that the backward pass needs
    out_shape: tuple[int, ...]
    statistics: list[int]  # sizes of a mean and a variance per layer, and then per branch
    parameters: list[tuple[int, ...]]  # a weight and a bias per layer
    zeros: Tensor
    shortcuts: Shortcuts | None


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
    """The shape of a branch of a sum, and the record of its normalisation."""

    shape: tuple[int, ...]
    settings: Settings
    norm: dict[str, tuple[int, int]]


class _Ends(NamedTuple):
    """Sizes of what is done outside of the stack, and where its parts are."""

    sizes: dict[str, int]
    fields: dict[str, tuple[int, int]]


@lru_cache(maxsize=256)
def make_plan(
    x_shape: torch.Size,
    dtype: torch.dtype,
    masked: bool,
    sizes: Sizes,
    options: tuple[Options, ...],
    shortcuts: Shortcuts | None = None,
) -> Plan | None:
    """The plan, or None where the layers are not such as the programs can do.

    These are layers of one chain, whose functionals fill whole vectors.
    """
    plain = all(_is_plain(shape, option.chains) for (shape, _), option in zip(sizes, options, strict=True))
    if not plain or dtype not in (torch.float32, torch.float64) or 0 in x_shape or not _program.can_run():
        return None
    layers, branches, ends, kept = _place(x_shape, dtype, masked, sizes, options, shortcuts)
    if any(layer.layout.plan.groups > 1 for layer in layers):
        return None
    backward, passing = _backward_program(layers, branches, ends, dtype)
    parameters = [size for shape, _ in sizes for size in (tuple(shape), (shape[0], shape[2]))]
    zeros = max(x_shape[0] * math.prod(bias) for bias in parameters[1::2])
    return Plan(
        options=options,
        forward=_forward_program(layers, branches, ends, dtype),
        backward=backward,
        kept=kept // dtype.itemsize,
        passing=passing // dtype.itemsize,
        out_shape=(*layers[-1].shape[:-2], layers[-1].shape[-2] * layers[-1].shape[-1]),
        statistics=[
            n for n in (*(shape[0] for shape, _ in sizes), *(b.shape[-1] for b in branches)) for _ in "mv"
        ],
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
    shortcuts: Shortcuts | None,
) -> tuple[list[_Layer], list[_Branch], _Ends | None, int]:
    """Where everything is that the backward pass needs, and how much memory that takes."""
    arena = Memory(ARENA, dtype.itemsize)
    if shortcuts is None:
        layers = _place_layers(arena, (X, 0), x_shape, masked, sizes, options)
        return layers, [], None, arena.size
    start = arena.take(math.prod(x_shape))
    layers = _place_layers(arena, start, x_shape, masked, sizes, options)
    end_shape = x_shape[0], math.prod(layers[-1].shape[-2:])
    ends = _place_ends(arena, x_shape, end_shape[1], shortcuts.features, masked, len(sizes))
    branches = _place_branches(arena, start, x_shape, end_shape, ends, shortcuts.norm, len(sizes))
    last = layers[-1]
    sum_of_ends = {**last.norm, "addend": branches[TO_END].norm["y"]}
    settings = last.settings._replace(scale=shortcuts.norm.scale)
    return [*layers[:-1], last._replace(norm=sum_of_ends, settings=settings)], branches, ends, arena.size


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


def _place_ends(
    arena: Memory, x_shape: torch.Size, end: int, features: int, masked: bool, depth: int
) -> _Ends:
    """The mean over time and both linear maps."""
    batch, length, channels = x_shape
    first = PARAMETERS + 4 * depth
    fields = {
        "near": (X, 0), "x": (first, 0), "pooled": arena.take(batch * channels),
        "matrix": (first + 1 + OUTSIDE.index("matrix"), 0), "beside": arena.take(math.prod(x_shape)),
        "end_matrix": (first + 1 + OUTSIDE.index("end_matrix"), 0), "around": arena.take(batch * end),
    }  # fmt: skip
    if masked:
        fields["mask"] = (MASK, 0)
    sizes = {
        "batch": batch, "length": length, "channels": channels, "features": features, "end": end,
        "tasks": max(1, min(batch, batch * length * (channels + features) // _WORTH_A_TASK, 16)),
        "masked": masked, "scratch_size": -(-8 * channels // 64) * 64,
    }  # fmt: skip
    return _Ends(sizes, fields)


def _place_branches(
    arena: Memory,
    start: tuple[int, int],
    x_shape: torch.Size,
    end_shape: tuple[int, ...],
    ends: _Ends,
    settings: Settings,
    depth: int,
) -> list[_Branch]:
    """The three normalised branches; the first sum is at `start`, the second is made by the last layer."""
    entering, around = arena.take(math.prod(x_shape)), arena.take(math.prod(end_shape))
    alone, fields = settings._replace(scale=1.0), ends.fields
    parameters = PARAMETERS + 4 * depth + 1
    branches = []
    for number, (shape, x, y, own) in enumerate(
        (
            (x_shape, (X, 0), entering, alone),
            (x_shape, fields["beside"], start, settings),
            (end_shape, fields["around"], around, alone),
        )
    ):
        weight, bias = ((parameters + OUTSIDE.index(name), 0) for name in OWN[number])
        mean = parameters + len(OUTSIDE) + 2 * number
        norm = {"x": x, "y": y, "weight": weight, "bias": bias, "mean": (mean, 0), "variance": (mean + 1, 0)}
        if "mask" in fields and number != TO_END:
            norm["mask"] = (MASK, 0)
        if number == TO_START:
            norm["addend"] = entering
        branches.append(_Branch(tuple(shape), own, norm))
    return branches


def _forward_program(
    layers: list[_Layer], branches: list[_Branch], ends: _Ends | None, dtype: torch.dtype
) -> Program:
    program = Program()
    if ends is not None:
        _add_ends(program, ends, "forward", {}, dtype)
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
    layers: list[_Layer], branches: list[_Branch], ends: _Ends | None, dtype: torch.dtype
) -> tuple[Program, int]:
    """The program, and how much memory it needs between its steps.

    Its own bases: scratch, the gradients of what enters and of all parameters of layers; with shortcuts then
    those of what is near, of the first linear map's values, and of all parameters OUTSIDE.
    """
    first = PARAMETERS + 4 * len(layers)
    if branches:
        first += 1 + len(OUTSIDE) + 2 * len(branches)
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
    if ends is not None:
        _add_branches(program, branches, ends, dy, gradients + 2 * len(layers), scratch, dtype)
    return program, scratch.size


def _add_branches(
    program: Program,
    branches: list[_Branch],
    ends: _Ends,
    dstart: tuple[int, int],
    base: int,
    scratch: Memory,
    dtype: torch.dtype,
) -> None:
    """Backward steps of what is outside; the factor of a sum is that of both its branches."""
    batch, channels, end = (ends.sizes[name] for name in ("batch", "channels", "end"))
    parameters = {name: (base + 2 + i, 0) for i, name in enumerate(OUTSIDE)}
    values = (base, 0), (base + 1, 0), scratch.take(batch * end)
    for number, branch in enumerate(branches):
        weight, bias = (parameters[name] for name in OWN[number])
        gradients = {"dx": values[number], "dweight": weight, "dbias": bias}
        dy = {"dy": (Y, 0) if number == TO_END else dstart}
        scaled = branch._replace(settings=branches[TO_START].settings)
        _normalization(program, scaled, "backward", {**branch.norm, **dy, **gradients}, dtype)
    dnear, dbeside, daround = values
    gradients = {"dnear": dnear, "dbeside": dbeside, "daround": daround}
    gradients |= {f"d{name}": parameters[name] for name in ("matrix", "shift", "end_matrix", "end_shift")}
    gradients["dpooled"] = scratch.take(batch * channels)
    _add_ends(program, ends, "backward", gradients, dtype)


def _add_ends(
    program: Program, ends: _Ends, name: str, gradients: dict[str, tuple[int, int]], dtype: torch.dtype
) -> None:
    from seq2tens.ops._ends_kernels import AT, FIELDS, entry

    gemm, limit_threads, _ = code(name, dtype)
    known = {**ends.sizes, "gemm": gemm, "limit_threads": limit_threads}
    record = program.record(array("q", [int(known.get(field, 0)) for field in FIELDS]))
    for field, place in {**ends.fields, **gradients}.items():
        program.link(record + AT[field], *place)
    program.step(entry(f"{name}{8 * dtype.itemsize}").address, record, known["tasks"], AT)


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
