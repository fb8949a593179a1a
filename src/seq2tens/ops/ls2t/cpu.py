"""The recursion on CPUs: the kernels of `csrc/ls2t.cpp` as custom operations of torch."""

from __future__ import annotations

import ctypes
from array import array
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seq2tens.ops import native
from seq2tens.ops.chains import Chains
from seq2tens.ops.ls2t.autograd import (
    BACKWARD_SCHEMA,
    FORWARD_SCHEMA,
    Inputs,
    Pair,
    call,
    register_derivatives,
)


class Words(native.Struct):
    """The chains as words, each from its first vector to its last; see `csrc/seq2tens.h`."""

    name = "seq2tens_words"
    _fields_ = (
        *native.fields("count longest states components levels shared"),
        *native.arrays("start component state owned level"),
    )


class Forward(native.Struct):
    """A forward pass of the recursion; see `csrc/seq2tens.h`."""

    name = "seq2tens_ls2t"
    _fields_ = (
        *native.fields("is_double threads batch length features width reverse lift_order block"),
        ("words", ctypes.POINTER(Words)),
        *native.arrays("x weight bias coefficients powers mask state out final kept"),
    )


class Backward(native.Struct):
    """Its adjoint; see `csrc/seq2tens.h`."""

    name = "seq2tens_ls2t_gradients"
    _fields_ = (
        ("call", ctypes.POINTER(Forward)),
        *native.arrays("out final x weight bias coefficients powers state"),
    )


class _Words(NamedTuple):
    struct: Words
    arrays: list[array[int]]  # kept alive, the struct knows where they are


@lru_cache(maxsize=256)
def words_of(chains: Chains, components: int) -> _Words:
    """Words that cover all states: one for each state that no other extends."""
    parents = set(chains.parent)
    ends = [state for state in range(len(chains.parent)) if state not in parents]
    level_of = {state: level for level, state in enumerate(chains.output)}
    start, component, states, owned, level = (array("q") for _ in range(5))
    start.append(0)
    seen: set[int] = set()
    for end in ends:
        word: list[int] = []
        while end >= 0:
            word.insert(0, end)
            end = chains.parent[end]
        for state in word:
            component.append(chains.component[state])
            states.append(state)
            owned.append(state not in seen)
            level.append(-1 if state in seen else level_of.get(state, -1))
            seen.add(state)
        start.append(len(states))
    lists = [start, component, states, owned, level]
    numbers = (len(ends), max(chains.depth), len(chains.parent), components, len(chains.output))
    shared = sorted(component) != list(range(components))
    return _Words(Words(*numbers, shared, *(values.buffer_info()[0] for values in lists)), lists)


def steps_per_block(weight_shape: tuple[int, ...]) -> int:
    """Steps per matrix product: as many as keep its result well within a core's cache."""
    components, _, width = weight_shape
    return max(32, min(256, 40960 // max(1, components * width) // 32 * 32))


def ls2t(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    coefficients: Tensor | None,
    powers: Tensor | None,
    mask: Tensor | None,
    state: Tensor | None,
    chains: Chains,
    reverse: bool,
    return_sequences: bool,
) -> tuple[Tensor, Tensor]:
    """Same signature and meaning as `reference.ls2t`."""
    tensors = (x, weight, bias, coefficients, powers, mask, state)
    return call(_pair, tensors, chains, reverse, return_sequences)


class _Call:
    """The struct of a call, and the contiguous tensors whose addresses stand in it."""

    def __init__(self, inputs: Inputs) -> None:
        (batch, length, features), (components, _, width) = inputs.x.shape, inputs.weight.shape
        coefficients = inputs.coefficients
        if coefficients is None and inputs.powers is not None:
            coefficients = torch.ones(1)
        wide = (None if t is None else t.double() for t in (coefficients, inputs.powers))
        tensors = (inputs.x, inputs.weight, inputs.bias, *wide, inputs.mask, inputs.state)
        self.tensors = [None if t is None else t.contiguous() for t in tensors]
        self.words = words_of(inputs.chains, components)
        self.struct = Forward(
            inputs.x.dtype == torch.float64, native.threads(), batch, length, features, width, inputs.reverse,
            0 if coefficients is None else len(coefficients), steps_per_block(inputs.weight.shape),
            ctypes.pointer(self.words.struct), *map(native.address, self.tensors),
        )  # fmt: skip


def _compute(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Levels along time, final state, and the state before every block of steps."""
    inputs = Inputs(*arguments)
    out, final, kept = empty_results(inputs)
    call = _Call(inputs)
    struct = call.struct
    struct.final = final.data_ptr()
    if inputs.return_sequences:
        struct.out = out.data_ptr()
    if inputs.keep:
        struct.kept = kept.data_ptr()
    native.run("ls2t_forward", struct)
    return out, final, kept


_register = torch.library.custom_op(
    "seq2tens::ls2t", mutates_args=(), device_types="cpu", schema=FORWARD_SCHEMA
)
_forward = _register(_compute)


@_forward.register_fake
def _(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    return empty_results(Inputs(*arguments))


def empty_results(inputs: Inputs) -> tuple[Tensor, Tensor, Tensor]:
    """Memory for levels, final state and kept states."""
    blocks = -(-inputs.x.shape[1] // steps_per_block(inputs.weight.shape))
    return inputs.empty_results(blocks, torch.float64)


def _compute_backward(dout: Tensor, dfinal: Tensor, kept: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
    """Derivatives by x, weight, bias, coefficients, powers and state, of size 0 where these are missing."""
    inputs = Inputs(*arguments)
    call = _Call(inputs)
    call.struct.kept = kept.data_ptr()
    dout, dfinal = dout.contiguous(), dfinal.contiguous()
    gradients = inputs.empty_gradients()
    sums = [None if t is None else g for t, g in zip(inputs.differentiable, gradients, strict=True)]
    struct = Backward(
        ctypes.pointer(call.struct), dout.data_ptr() if inputs.return_sequences else None, dfinal.data_ptr(),
        *map(native.address, sums),
    )  # fmt: skip
    native.run("ls2t_backward", struct)
    return gradients


_register_backward = torch.library.custom_op(
    "seq2tens::ls2t_backward", mutates_args=(), device_types="cpu", schema=BACKWARD_SCHEMA
)
_backward = _register_backward(_compute_backward)


@_backward.register_fake
def _(dout: Tensor, dfinal: Tensor, kept: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
    return Inputs(*arguments).empty_gradients()


_pair = Pair(_forward, _backward, _compute, _compute_backward)
register_derivatives(_pair)
