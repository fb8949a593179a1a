"""The recursion on CPUs: fused numba kernels as custom operations of torch, forward and backward.

This module is the torch side: registration, packing, sharing out of work. `_kernels` does the arithmetic
and is imported, with numba, on the first call.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from seq2tens.ops import reference
from seq2tens.ops._threads import run_all
from seq2tens.ops.chains import Chains

_SCHEMA = (
    "Tensor x, Tensor weight, Tensor? bias, Tensor coefficients, Tensor? powers, Tensor? mask, Tensor state, "
    "int[] component, int[] parent, int[] output, bool reverse, bool return_sequences, bool keep"
)
_TENSORS = 7  # the first inputs, differentiable all but one:
_MASK = 5


class Inputs(NamedTuple):
    """The arguments of the operation, in the order of its schema."""

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    coefficients: Tensor
    powers: Tensor | None  # decay^0, decay^1, …, (order + 1, width)
    mask: Tensor | None
    state: Tensor
    component: list[int]
    parent: list[int]
    output: list[int]
    reverse: bool
    return_sequences: bool
    keep: bool  # whether a backward pass may follow


class Plan(NamedTuple):
    """How one call is cut up. It depends on shapes only, so results do not depend on thread counts."""

    slices: list[tuple[int, int]]  # ranges of sequences
    groups: list[tuple[int, int]]  # ranges of functionals
    parallel: bool  # whether there is enough work to wake another thread


def ls2t(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    coefficients: Tensor,
    powers: Tensor | None,
    mask: Tensor | None,
    state: Tensor,
    chains: Chains,
    reverse: bool,
    return_sequences: bool,
) -> tuple[Tensor, Tensor]:
    """Same signature and meaning as `reference.ls2t`."""
    tensors = (x, weight, bias, coefficients, powers, mask, state)
    keep = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)
    output, final, _ = torch.ops.seq2tens.ls2t(*tensors, *chains, reverse, return_sequences, keep)
    return (output if return_sequences else final[:, list(chains.output)]), final


@torch.library.custom_op(
    "seq2tens::ls2t", mutates_args=(), device_types="cpu", schema=f"({_SCHEMA}) -> (Tensor, Tensor, Tensor)"
)
def _forward(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Output along time, final state, and the state before every block of steps."""
    from seq2tens.ops import _kernels

    inputs = Inputs(*arguments)
    plan = _plan(tuple(inputs.x.shape), tuple(inputs.weight.shape))
    results = _empty_results(inputs)
    arrays = [_array(t) for t in (inputs.state, *results)]
    shared = _shared_arguments(inputs, lifted=False)
    tasks = [
        (*_group_arguments(inputs, start, stop), *arrays, *shared, first, last, start)
        for start, stop in plan.groups
        for first, last in plan.slices
    ]
    run_all(_kernels.forward, tasks, plan.parallel)
    return results


@_forward.register_fake
def _(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    return _empty_results(Inputs(*arguments))


def _empty_results(inputs: Inputs) -> tuple[Tensor, Tensor, Tensor]:
    (batch, length, _), width = inputs.x.shape, inputs.weight.shape[2]
    blocks = -(-length // _block(inputs)) if inputs.keep else 0
    return (
        inputs.x.new_empty(batch, length if inputs.return_sequences else 0, len(inputs.output), width),
        inputs.x.new_empty(batch, len(inputs.component), width),
        inputs.x.new_empty(batch, blocks, len(inputs.component), width, dtype=torch.float64),
    )


@torch.library.custom_op(
    "seq2tens::ls2t_backward",
    mutates_args=(),
    device_types="cpu",
    schema=f"(Tensor dout, Tensor dfinal, Tensor kept, bool lifted, {_SCHEMA}) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
)
def _backward(
    dout: Tensor, dfinal: Tensor, kept: Tensor, lifted: bool, *arguments: Any
) -> tuple[Tensor, ...]:
    """Derivatives by x, weight, bias, coefficients, powers and state."""
    from seq2tens.ops import _kernels

    inputs = Inputs(*arguments)
    plan = _plan(tuple(inputs.x.shape), tuple(inputs.weight.shape))
    dx = inputs.x.new_empty(len(plan.groups), *inputs.x.shape)
    dstate = inputs.x.new_empty(inputs.state.shape)
    incoming = [_array(t) for t in (dout, dfinal, kept)]
    shared = _shared_arguments(inputs, lifted)
    sums = _Sums(inputs)
    tasks = [
        (*arguments, *incoming, dx[index].numpy(), *sums.new(start, stop, arguments), dstate.numpy(),
         *shared, first, last, start)
        for index, (start, stop) in enumerate(plan.groups)
        for arguments in [_group_arguments(inputs, start, stop)]
        for first, last in plan.slices
    ]  # fmt: skip
    run_all(_kernels.backward, tasks, plan.parallel)
    return dx[0] if len(plan.groups) == 1 else dx.sum(0), *sums.totals(), dstate


@_backward.register_fake
def _(dout: Tensor, dfinal: Tensor, kept: Tensor, lifted: bool, *arguments: Any) -> tuple[Tensor, ...]:
    inputs = Inputs(*arguments)
    components, _, width = inputs.weight.shape
    return (
        torch.empty_like(inputs.x, memory_format=torch.contiguous_format),
        torch.empty_like(inputs.weight, memory_format=torch.contiguous_format),
        inputs.x.new_empty(components, width),
        inputs.x.new_empty(len(inputs.coefficients)),
        inputs.x.new_empty(_depth(inputs) + 1, width),
        torch.empty_like(inputs.state, memory_format=torch.contiguous_format),
    )


def _setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.save_for_backward(*inputs[:_TENSORS], output[2])
    ctx.rest = inputs[_TENSORS:]
    ctx.mark_non_differentiable(output[2])


def _differentiate(ctx: Any, dout: Tensor, dfinal: Tensor, dkept: Tensor) -> tuple:
    *tensors, kept = ctx.saved_tensors
    inputs = Inputs(*tensors, *ctx.rest)
    dx, dweight, dbias, dcoefficients, dpowers, dstate = torch.ops.seq2tens.ls2t_backward(
        dout, dfinal, kept, ctx.needs_input_grad[3], *inputs
    )
    return (
        dx,
        dweight,
        None if inputs.bias is None else dbias,
        dcoefficients,
        None if inputs.powers is None else dpowers,
        None,
        dstate,
        *[None] * len(ctx.rest),
    )


_forward.register_autograd(_differentiate, setup_context=_setup_context)


def _setup_second_context(ctx: Any, inputs: tuple, output: tuple) -> None:
    dout, dfinal, _, _, *rest = inputs
    ctx.save_for_backward(dout, dfinal, *rest[:_TENSORS])
    ctx.rest = rest[_TENSORS:]


def _differentiate_twice(ctx: Any, *incoming: Tensor) -> tuple:
    """Second derivatives are rare: let autograd take them, through the reference."""
    with torch.enable_grad():
        dout, dfinal, *tensors = (
            None if t is None else t.detach().requires_grad_(t.is_floating_point()) for t in ctx.saved_tensors
        )
        inputs: Any = Inputs(*tensors, *ctx.rest)  # type: ignore[arg-type]
        first = _reference_gradients(inputs, dout, dfinal)  # type: ignore[arg-type]
        given = [g for g in (dout, dfinal, *tensors) if g is not None and g.requires_grad]
        pairs = [(f, g) for f, g in zip(first, incoming, strict=True) if f is not None and f.requires_grad]
        outputs, cotangents = zip(*pairs, strict=True)
        second = iter(torch.autograd.grad(outputs, given, cotangents, allow_unused=True))
    dout2, dfinal2, *rest = (
        next(second) if t is not None and t.requires_grad else None for t in (dout, dfinal, *tensors)
    )
    return dout2, dfinal2, None, None, *rest, *[None] * len(ctx.rest)


def _reference_gradients(inputs: Any, dout: Tensor, dfinal: Tensor) -> list[Tensor | None]:
    """What `_backward` returns, as a differentiable function."""
    chains = Chains(*map(tuple, (inputs.component, inputs.parent, inputs.output)))
    tensors: list[Any] = list(inputs[:_TENSORS])
    run: Any = reference.ls2t
    out, final = run(*tensors, chains, inputs.reverse, inputs.return_sequences)
    values, cotangents = ([out, final], [dout, dfinal]) if inputs.return_sequences else ([final], [dfinal])
    leaves = [t for i, t in enumerate(inputs[:_TENSORS]) if t is not None and i != 5]
    found = iter(torch.autograd.grad(values, leaves, cotangents, create_graph=True, allow_unused=True))
    return [next(found) if t is not None else None for i, t in enumerate(inputs[:_TENSORS]) if i != 5]


_backward.register_autograd(_differentiate_twice, setup_context=_setup_second_context)


class _Sums:
    """Arrays of each task for what is summed over sequences, and their totals in a fixed order."""

    def __init__(self, inputs: Inputs) -> None:
        self.components, self.features, self.width = inputs.weight.shape
        self.lift_order, self.depth = len(inputs.coefficients), _depth(inputs)
        self.dtype = inputs.x.dtype
        self.parts: list[tuple[slice, tuple[np.ndarray, ...]]] = []

    def new(self, start: int, stop: int, arguments: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        columns, width = self.components * (stop - start), stop - start
        part = (
            np.zeros((self.features, columns), arguments[1].dtype),
            np.zeros(columns),
            np.zeros((self.lift_order, width)),
            np.zeros((self.depth + 1, width)),
        )
        self.parts.append((slice(start, stop), part))
        return part

    def totals(self) -> tuple[Tensor, ...]:
        dweight = np.zeros((self.components, self.features, self.width), self.parts[0][1][0].dtype)
        dbias = np.zeros((self.components, self.width))
        dcoefficients = np.zeros(self.lift_order)
        dpowers = np.zeros((self.depth + 1, self.width))
        for columns, (w, b, c, p) in self.parts:
            dweight[:, :, columns] += w.reshape(self.features, self.components, -1).transpose(1, 0, 2)
            dbias[:, columns] += b.reshape(self.components, -1)
            dcoefficients += c.sum(1)
            dpowers[:, columns] += p
        return tuple(torch.from_numpy(t).to(self.dtype) for t in (dweight, dbias, dcoefficients, dpowers))


def _block(inputs: Inputs) -> int:
    """Steps per matrix product: as many as keep the states of a block within a core's cache."""
    return 64 if len(inputs.component) * inputs.weight.shape[2] <= 2048 else 32


def _depth(inputs: Inputs) -> int:
    return max(Chains(tuple(inputs.component), tuple(inputs.parent), tuple(inputs.output)).depth)


@lru_cache(maxsize=1024)
def _plan(x_shape: tuple[int, ...], weight_shape: tuple[int, ...]) -> Plan:
    """Slices of at least 1024 steps; a batch too small for several cores is cut by functionals too."""
    (batch, length, features), (components, _, width) = x_shape, weight_shape
    work = batch * length * components * width * (features + 4)
    if work < 2_000_000:
        return Plan([(0, batch)], [(0, width)], False)
    slices = max(1, min(batch, 16, max(2, batch * length // 1024)))
    groups = max(1, min(8 // slices, width // 8))
    return Plan(_ranges(batch, slices), _ranges(width, groups), True)


def _ranges(size: int, parts: int) -> list[tuple[int, int]]:
    cuts = [size * i // parts for i in range(parts + 1)]
    return list(pairwise(cuts))


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.contiguous().numpy()


def _group_arguments(inputs: Inputs, start: int, stop: int) -> tuple[np.ndarray, ...]:
    """x, weight, bias, coefficients, powers and mask for a range of functionals.

    The vectors stand side by side, (features, components · width), so that one product serves all.
    """
    weight = inputs.weight.numpy()[:, :, start:stop].transpose(1, 0, 2).reshape(inputs.weight.shape[1], -1)
    bias = weight[0] if inputs.bias is None else inputs.bias.numpy()[:, start:stop].reshape(-1)
    if inputs.powers is None:
        powers = np.ones((_depth(inputs) + 1, stop - start))
    else:
        powers = np.array(inputs.powers.numpy()[:, start:stop], np.float64, order="C")
    return (
        _array(inputs.x),
        np.ascontiguousarray(weight),
        np.ascontiguousarray(bias),
        inputs.coefficients.numpy().astype(np.float64),
        powers,
        _NO_MASK if inputs.mask is None else _array(inputs.mask),
    )


_NO_MASK = np.empty((1, 1), bool)


def _shared_arguments(inputs: Inputs, lifted: bool) -> tuple:
    """The chains as arrays, the switches of the kernels, the block size and the matrix product."""
    chains = _chain_arrays(tuple(inputs.component), tuple(inputs.parent), tuple(inputs.output))
    switches = (
        inputs.bias is not None,
        inputs.mask is not None,
        lifted or len(inputs.coefficients) > 1 or inputs.powers is not None,
        inputs.reverse,
        inputs.return_sequences,
        inputs.keep,
    )
    return *chains, switches, _block(inputs), _blas(inputs.x.dtype)


@lru_cache(maxsize=256)
def _chain_arrays(component: tuple, parent: tuple, output: tuple) -> tuple[np.ndarray, ...]:
    depth = Chains(component, parent, output).depth
    return tuple(np.array(values, dtype=np.int64) for values in (component, parent, depth, output))


@lru_cache(maxsize=2)
def _blas(dtype: torch.dtype) -> tuple[int, int]:
    """Addresses of the matrix product for this dtype and of the switch for its threads."""
    from seq2tens.ops._blas import addresses

    single, double, limit = addresses()
    return (single if dtype == torch.float32 else double), limit
