"""Programs for a stack of normalised LS2T layers: what is computed where, once for each shape."""

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
# bases of both programs: these, then weight and bias of every layer, then mean and variance of every layer
ARENA, ZEROS, Y, X, MASK, PARAMETERS = range(6)


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
    norm: dict[str, tuple[int, int]]  # of the record of the normalisation


@lru_cache(maxsize=256)
def make_plan(
    x_shape: torch.Size, dtype: torch.dtype, masked: bool, sizes: Sizes, options: tuple[Options, ...]
) -> Plan | None:
    """The plan, or None where the layers are not such as the programs can do.

    These are layers of one chain, whose functionals fill whole vectors.
    """
    plain = all(_is_plain(shape, option.chains) for (shape, _), option in zip(sizes, options, strict=True))
    if not plain or dtype not in (torch.float32, torch.float64) or 0 in x_shape or not _program.can_run():
        return None
    layers, kept = _place_layers(x_shape, dtype, masked, sizes, options)
    if any(layer.layout.plan.groups > 1 for layer in layers):
        return None
    backward, passing = _backward_program(layers, dtype)
    parameters = [size for shape, _ in sizes for size in (tuple(shape), (shape[0], shape[2]))]
    zeros = max(x_shape[0] * math.prod(bias) for bias in parameters[1::2])
    return Plan(
        options=options,
        forward=_forward_program(layers, dtype),
        backward=backward,
        kept=kept // dtype.itemsize,
        passing=passing // dtype.itemsize,
        out_shape=(*layers[-1].shape[:-2], layers[-1].shape[-2] * layers[-1].shape[-1]),
        statistics=[shape[0] for shape, _ in sizes for _ in range(2)],
        parameters=parameters,
        zeros=torch.zeros(zeros, dtype=dtype),
    )


def _is_plain(shape: torch.Size, chains: Chains) -> bool:
    """Whether there is one chain in whole vectors."""
    levels = tuple(range(shape[0]))
    return chains == Chains(levels, tuple(m - 1 for m in levels), levels) and shape[2] % 16 == 0


def _place_layers(
    x_shape: torch.Size, dtype: torch.dtype, masked: bool, sizes: Sizes, options: tuple[Options, ...]
) -> tuple[list[_Layer], int]:
    arena, layers, x = Memory(ARENA, dtype.itemsize), list[_Layer](), (X, 0)
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
        }  # fmt: skip
        y = (Y, 0) if i == len(sizes) - 1 else arena.take(size)
        norm = {"x": levels, "mean": (statistics, 0), "variance": (statistics + 1, 0), "y": y}
        if masked and sequences:
            norm["mask"] = (MASK, 0)
        layers.append(_Layer(layout, option, (*steps, order, width), x, levels, fields, norm))
        x, features = y, order * width
    return layers, arena.size


def _forward_program(layers: list[_Layer], dtype: torch.dtype) -> Program:
    program = Program()
    for layer in layers:
        record = _recursion(program, layer, layer.fields)
        tasks = layer.layout.plan.tasks
        program.step(code("regroup", dtype)[2], record, tasks, AT)
        program.step(_set_code(program, record, "forward", dtype), record, tasks, AT)
        _normalization(program, layer, "forward", layer.norm, dtype)
    return program


def _backward_program(layers: list[_Layer], dtype: torch.dtype) -> tuple[Program, int]:
    """The program, and how much memory it needs between its steps."""
    first = PARAMETERS + 4 * len(layers)
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
        dx = (dx_base, 0) if i == 0 else scratch.take(steps * features)
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
    return program, scratch.size


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
    program: Program, layer: _Layer, name: str, fields: dict[str, tuple[int, int]], dtype: torch.dtype
) -> None:
    layout = layout_of(torch.Size(layer.shape), layer.option.norm, "mask" in fields, False, False)
    record = program.record(layout.record)
    for field, place in fields.items():
        if field != ("y" if name == "backward" else ""):
            program.link(record + layout.at[field], *place)
    program.step(address(name, dtype), record, layout.tasks, layout.at)
