"""The recursion on CPUs: the kernels of `csrc/ls2t.cpp` as custom operations of torch."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seq2tens._checks import require
from seq2tens.ops import native
from seq2tens.ops.chains import Chains
from seq2tens.ops.dispatch import cpu_unsupported
from seq2tens.ops.heap import use_huge_pages
from seq2tens.ops.ls2t.autograd import Kernels, call, register_operations
from seq2tens.ops.ls2t.recursion import Gradients, Recursion, Results, Saved


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
        *native.arrays("x weight bias coefficients powers mask state out final checkpoints products"),
    )


class Backward(native.Struct):
    """A backward pass of the recursion; see `csrc/seq2tens.h`."""

    name = "seq2tens_ls2t_gradients"
    _fields_ = (
        ("call", ctypes.POINTER(Forward)),
        *native.arrays("out final x weight bias coefficients powers state"),
    )


class _Words(NamedTuple):
    pointer: Any
    arrays: list[array[int]]  # the struct holds their addresses, so they must stay alive


@lru_cache(maxsize=256)
def words_of(chains: Chains, components: int) -> _Words:
    """Return words that cover all states: one for each state that has no children."""
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
    struct = Words(*numbers, shared, *(values.buffer_info()[0] for values in lists))
    return _Words(ctypes.pointer(struct), lists)


def steps_per_block(weight_shape: tuple[int, ...]) -> int:
    """Return the number of steps per matrix product, such that the result fits into the cache of a core."""
    components, _, width = weight_shape
    return max(32, min(256, 40960 // max(1, components * width) // 32 * 32))


def unsupported(recursion: Recursion) -> str | None:
    """Return why the kernels cannot handle these arguments; None if they can."""
    return cpu_unsupported(*recursion.tensors)


def ls2t(recursion: Recursion) -> tuple[Tensor, Tensor]:
    """Compute the same as `reference.ls2t`."""
    return call(_pair, recursion)


def prepare(recursion: Recursion) -> Callable[[Tensor, Tensor | None, Tensor | None], tuple[Tensor, Tensor]]:
    """Same meaning as `reference.prepare`; parameters are described once."""
    template = _describe(recursion)
    levels, states = len(recursion.chains.output), len(recursion.chains.component)

    def run(x: Tensor, mask: Tensor | None, state: Tensor | None) -> tuple[Tensor, Tensor]:
        x = x.to(recursion.x.dtype)
        arrays = [None if t is None else t.contiguous() for t in (x, mask, state)]
        batch, length, channels = x.shape
        rule = f"`x` must have {template.features} channels (the in_features of `weight`)"
        require(channels == template.features, f"{rule}, got {channels}")
        output = x.new_empty(batch, length, levels, template.width)
        final = x.new_empty(batch, states, template.width)
        struct = Forward.from_buffer_copy(template)
        struct.threads, struct.batch, struct.length = native.threads(), batch, length
        struct.x, struct.mask, struct.state = native.addresses(*arrays)
        struct.out, struct.final = native.addresses(output, final)
        native.run_kernel("ls2t_forward", struct)
        return output, final

    return run


def _describe(recursion: Recursion) -> Forward:
    """Return the struct of a call, without the addresses of its results."""
    x, weight, bias, coefficients, powers, mask, state, *_ = recursion
    lift_order = 0
    if coefficients is not None or powers is not None:
        coefficients = torch.ones(1).double() if coefficients is None else coefficients.double()
        powers, lift_order = None if powers is None else powers.double(), len(coefficients)
    numbers = (
        x.dtype == torch.float64, native.threads(), *x.shape, weight.shape[2], recursion.reverse, lift_order,
        steps_per_block(weight.shape), words_of(recursion.chains, len(weight)).pointer,
    )  # fmt: skip
    return Forward.of(numbers, x, weight, bias, coefficients, powers, mask, state)


def _empty_results(recursion: Recursion, keeps_products: bool = False) -> Results:
    blocks = -(-recursion.x.shape[1] // steps_per_block(recursion.weight.shape))
    return recursion.empty_results(blocks, torch.float64, keeps_products)


def _forward(recursion: Recursion, keeps_products: bool) -> Results:
    """Return levels along time, final state, and what is saved: the state before each block, and products."""
    # the kernels keep products for some sizes only, see `csrc/seq2tens.h`
    results = _empty_results(recursion, keeps_products and _fits_kernels(recursion))
    use_huge_pages(results.output, *results.saved)
    struct = _describe(recursion)
    struct.final = results.final.data_ptr()
    if recursion.return_sequences:
        struct.out = results.output.data_ptr()
    if recursion.keep:
        _point_to(struct, results.saved)
    native.run_kernel("ls2t_forward", struct)
    return results


def _fits_kernels(recursion: Recursion) -> bool:
    return len(recursion.x) >= 4 and recursion.weight.shape[2] % 16 == 0


def _point_to(struct: Forward, saved: Saved) -> None:
    struct.checkpoints, struct.products = native.addresses(*saved)


def _backward(dout: Tensor | None, dfinal: Tensor | None, saved: Saved, recursion: Recursion) -> Gradients:
    """Return gradients of x, weight, bias, coefficients, powers and state, None for a missing one."""
    struct = _describe(recursion)
    _point_to(struct, saved)
    gradients = recursion.empty_gradients()
    use_huge_pages(gradients[0])
    dout = dout if recursion.return_sequences else None
    native.run_kernel("ls2t_backward", Backward.of([ctypes.pointer(struct)], dout, dfinal, *gradients))
    return gradients


_pair = register_operations("seq2tens::ls2t", Kernels(_forward, _backward, _empty_results), "cpu")
