"""Programs for a stack of normalised LS2T layers: what is computed where, once for each shape."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from seq2tens.ops import _program
from seq2tens.ops._calls import AT
from seq2tens.ops._ends_plan import BASES, TO_END, Ends, Shortcuts, add_backward, add_forward, place_ends
from seq2tens.ops._plan_parts import (
    ARENA,
    MASK,
    PARAMETERS,
    ZEROS,
    Memory,
    Place,
    X,
    Y,
    add_normalization,
    place_statistics,
)
from seq2tens.ops._program import Program
from seq2tens.ops._tasks import Key, Layout, make_layout
from seq2tens.ops.chains import Chains
from seq2tens.ops.cpu import code
from seq2tens.ops.normalize import Settings

Sizes = tuple[tuple[torch.Size, bool], ...]  # of each layer: the weight's shape, and whether it has a bias


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
    kept: int  # bytes that the forward pass leaves for the backward one
    passing: int  # bytes that the backward pass needs
    out_shape: tuple[int, ...]
    parameters: list[tuple[int, ...]]  # a weight and a bias per layer
    zeros: Tensor
    shortcuts: Shortcuts | None


class _Layer(NamedTuple):
    """Where the parts of a layer are, each a base and an offset."""

    layout: Layout
    option: Options
    shape: tuple[int, ...]  # of the levels
    x: Place
    levels: Place
    fields: dict[str, Place]  # of the record of the recursion
    settings: Settings
    norm: dict[str, Place]  # of the record of the normalisation


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
    layers, ends, kept = _place(x_shape, dtype, masked, sizes, options, shortcuts)
    if any(layer.layout.plan.groups > 1 for layer in layers):
        return None
    backward, passing = _backward_program(layers, ends, dtype)
    parameters = [size for shape, _ in sizes for size in (tuple(shape), (shape[0], shape[2]))]
    zeros = max(x_shape[0] * math.prod(bias) for bias in parameters[1::2])
    return Plan(
        options=options,
        forward=_forward_program(layers, ends, dtype),
        backward=backward,
        kept=kept,
        passing=passing,
        out_shape=(*layers[-1].shape[:-2], layers[-1].shape[-2] * layers[-1].shape[-1]),
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
) -> tuple[list[_Layer], Ends | None, int]:
    """Where everything is that the backward pass needs, and how much memory that takes."""
    arena = Memory(ARENA, dtype.itemsize)
    if shortcuts is None:
        layers = _place_layers(arena, (X, 0), x_shape, masked, sizes, options)
        return layers, None, arena.size
    start = arena.take(math.prod(x_shape))
    layers = _place_layers(arena, start, x_shape, masked, sizes, options)
    last, end = layers[-1], math.prod(layers[-1].shape[-2:])
    ends = place_ends(arena, start, x_shape, end, masked, shortcuts, len(sizes))
    norm = {**last.norm, "addend": ends.branches[TO_END].norm["y"]}
    settings = last.settings._replace(scale=shortcuts.norm.scale)
    return [*layers[:-1], last._replace(norm=norm, settings=settings)], ends, arena.size


def _place_layers(
    arena: Memory,
    x: Place,
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
        weight, running = PARAMETERS + 2 * i, PARAMETERS + 2 * len(sizes) + 2 * i
        fields = {
            "x": x, "mask": (MASK, 0), "state": (ZEROS, 0), "final": final, "out": levels,
            "given_weight": (weight, 0), "bias": (weight + 1, 0) if biased else (ZEROS, 0),
            "weight": arena.take(math.prod(shape)), "kept": arena.take(record[AT["kept_size"]], 8),
            "products": arena.take(batch * time * order * width),
        }  # fmt: skip
        y = (Y, 0) if i == len(sizes) - 1 else arena.take(size)
        norm = {"x": levels, "y": y, **place_statistics(arena, order, running)}
        if masked and sequences:
            norm["mask"] = (MASK, 0)
        layers.append(_Layer(layout, option, (*steps, order, width), x, levels, fields, option.norm, norm))
        x, features = y, order * width
    return layers


def _forward_program(layers: list[_Layer], ends: Ends | None, dtype: torch.dtype) -> Program:
    program = Program()
    if ends is not None:
        add_forward(program, ends, dtype)
    for layer in layers:
        record = _recursion(program, layer, layer.fields)
        tasks = layer.layout.plan.tasks
        program.step(code("regroup", dtype)[2], record, tasks, AT)
        program.step(_set_code(program, record, "forward", dtype), record, tasks, AT)
        add_normalization(program, "forward", layer.shape, layer.settings, layer.norm, dtype)
    return program


def _backward_program(layers: list[_Layer], ends: Ends | None, dtype: torch.dtype) -> tuple[Program, int]:
    """The program, and how much memory it needs between its steps.

    Its own bases: scratch, the gradients of what enters and of all parameters of layers; with shortcuts then
    those of `_ends_plan`.
    """
    first = PARAMETERS + 4 * len(layers) + (0 if ends is None else BASES)
    scratch, dx_base, gradients = Memory(first, dtype.itemsize), first + 1, first + 2
    program, dy = Program(), (Y, 0)
    for i, layer in reversed(list(enumerate(layers))):
        plan, fields = layer.layout.plan, layer.fields
        (order, width), size = layer.shape[-2:], math.prod(layer.shape)
        record = layer.layout.record
        features = record[AT["features"]]
        dlevels = scratch.take(size)
        gradients_of_norm = {
            "dy": dy, "dx": dlevels, "dweight": scratch.take(order), "dbias": scratch.take(order),
        }  # fmt: skip
        fields_of_norm = {**layer.norm, **gradients_of_norm}
        add_normalization(program, "backward", layer.shape, layer.settings, fields_of_norm, dtype)
        steps = record[AT["batch"]] * record[AT["length"]]
        dx = scratch.take(steps * features) if i > 0 or ends is not None else (dx_base, 0)
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
        add_backward(program, ends, dy, gradients + 2 * len(layers), scratch, dtype)
    return program, scratch.size


def _recursion(program: Program, layer: _Layer, fields: dict[str, Place]) -> int:
    record = program.record(layer.layout.record)
    for name, place in fields.items():
        program.link(record + AT[name], *place)
    return record


def _set_code(program: Program, record: int, name: str, dtype: torch.dtype) -> int:
    """Put the matrix product into a record; return the address of the kernel."""
    gemm, limit_threads, entry = code(name, dtype)
    program.words[record + AT["gemm"]], program.words[record + AT["limit_threads"]] = gemm, limit_threads
    return entry
