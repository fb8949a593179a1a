"""The full map of a power lift on CPUs: fused numba kernels as custom operations of torch.

This module is the torch side: registration, layout, sharing out of work. `_full_map_kernels` does the
arithmetic on torch's threads and is imported, with numba, on the first call.
"""

from __future__ import annotations

from array import array
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from seq2tens._checks import in_func_transform
from seq2tens.ops import full_map_reference
from seq2tens.ops._memory import empty
from seq2tens.ops._operation import is_unobserved
from seq2tens.ops._threads import launch

LANES = 8  # sequences per group, one float64 each: the widest vector register in use
_BLOCK = 32  # steps between two kept states
_LONG = 4096  # numbers in the top level from which on matrix products pay
_MOST_TASKS = 16
_WORTH_A_TASK = 200_000  # multiplications, some 40 µs

_SIZES = "batch points dim order lift_order size lower last learn rows"
_SHARES = "lanes groups tasks block blocks numbers scratch_size"
_SWITCHES = "long sequences increments"
_ARRAYS = "x coefficients starts words out kept dx dc scratch"
_THREADS = "threads thread thread_number gemm limit_threads"
_FIELDS = " ".join((_SIZES, _SHARES, _SWITCHES, _ARRAYS, _THREADS)).split()
CALL = np.dtype([(name, np.int64) for name in _FIELDS])  # what the kernels read
_AT = {name: position for position, name in enumerate(_FIELDS)}


class Plan(NamedTuple):
    """How one call is cut up. It depends on shapes only, so results do not depend on thread counts."""

    length: int  # steps
    size: int  # numbers in all levels
    lower: int  # and in those below the top
    lanes: int  # sequences of a group: they advance together
    groups: int
    tasks: int  # ranges of groups
    long: bool  # one sequence at a time, its top level by matrix products


def full_map(
    x: Tensor, coefficients: Tensor, order: int, return_sequences: bool, increments: bool = False
) -> Tensor:
    """Same signature and meaning as `full_map_reference.full_map`."""
    keep = torch.is_grad_enabled() and (x.requires_grad or coefficients.requires_grad)
    run = _compute if not keep and is_unobserved(x) else torch.ops.seq2tens.full_map
    return run(x, coefficients, order, return_sequences, increments, keep)[0]


def why_not(*tensors: Tensor) -> str | None:
    """The reason why the fused path cannot take these tensors, if there is one."""
    for tensor in tensors:
        if tensor.device.type != "cpu":
            return f"a tensor is on {tensor.device}"
        if in_func_transform(tensor):
            return "it has no rules for torch.func transforms; the reference has"
        if not torch.compiler.is_compiling() and forward_ad.unpack_dual(tensor).tangent is not None:
            return "it has no rule for forward-mode differentiation; the reference has"
    return None


def _compute(
    x: Tensor, coefficients: Tensor, order: int, sequences: bool, increments: bool, keep: bool
) -> tuple[Tensor, Tensor]:
    """The coordinates of Φ, and the lower levels of the state before every block of steps."""
    plan = _make_plan(tuple(x.shape), order, sequences, increments)
    out, kept = results = _empty_results(x, plan, sequences, keep, empty)
    _run("forward", plan, x, coefficients, (order, sequences, increments), out=out, kept=kept)
    return results


_register = torch.library.custom_op(
    "seq2tens::full_map",
    mutates_args=(),
    device_types="cpu",
    schema="(Tensor x, Tensor coefficients, int order, bool sequences, bool increments, bool keep) "
    "-> (Tensor, Tensor)",
)
_forward = _register(_compute)


@_forward.register_fake
def _(
    x: Tensor, coefficients: Tensor, order: int, sequences: bool, increments: bool, keep: bool
) -> tuple[Tensor, Tensor]:
    return _empty_results(x, _plan(x.shape, order, sequences, increments), sequences, keep)


def _empty_results(
    x: Tensor, plan: Plan, sequences: bool, keep: bool, new: Any = None
) -> tuple[Tensor, Tensor]:
    shape = (x.shape[0], plan.length, plan.size) if sequences else (x.shape[0], plan.size)
    blocks = -(-plan.length // _BLOCK) if keep else 0
    kept = x.new_empty(plan.groups, blocks, plan.lower * plan.lanes, dtype=torch.float64)
    return (x.new_empty(shape) if new is None else new(shape, x.dtype)), kept


@torch.library.custom_op(
    "seq2tens::full_map_backward",
    mutates_args=(),
    device_types="cpu",
    schema="(Tensor dout, Tensor kept, Tensor x, Tensor coefficients, int order, bool sequences, "
    "bool increments, bool learn) -> (Tensor, Tensor)",
)
def _backward(
    dout: Tensor,
    kept: Tensor,
    x: Tensor,
    coefficients: Tensor,
    order: int,
    sequences: bool,
    increments: bool,
    learn: bool,
) -> tuple[Tensor, Tensor]:
    """Derivatives by x and by the coefficients; the latter are 0 unless `learn`."""
    plan = _make_plan(tuple(x.shape), order, sequences, increments)
    dx = torch.empty_like(x, memory_format=torch.contiguous_format)
    # sums of each group, added up in the same order whoever computes them
    dc = torch.zeros(plan.groups, len(coefficients) if learn else 0, dtype=torch.float64)
    options = (order, sequences, increments)
    _run(
        "backward", plan, x, coefficients, options,
        out=dout.contiguous(), kept=kept.contiguous(), dx=dx, dc=dc,
    )  # fmt: skip
    return dx, dc.sum(0).to(coefficients.dtype) if learn else torch.zeros_like(coefficients)


@_backward.register_fake
def _(dout: Tensor, kept: Tensor, x: Tensor, coefficients: Tensor, *options: Any) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x, memory_format=torch.contiguous_format), torch.empty_like(coefficients)


def _setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
    x, coefficients, *ctx.options, _ = inputs
    ctx.save_for_backward(output[1], x, coefficients)
    ctx.mark_non_differentiable(output[1])


def _differentiate(ctx: Any, dout: Tensor, dkept: Tensor) -> tuple:
    learn = ctx.needs_input_grad[1]
    dx, dc = torch.ops.seq2tens.full_map_backward(dout, *ctx.saved_tensors, *ctx.options, learn)
    return dx, dc if learn else None, None, None, None, None


_forward.register_autograd(_differentiate, setup_context=_setup_context)


def _setup_second_context(ctx: Any, inputs: tuple, output: tuple) -> None:
    dout, _, x, coefficients, *ctx.options, _ = inputs
    ctx.save_for_backward(dout, x, coefficients)


def _differentiate_twice(ctx: Any, ddx: Tensor, ddc: Tensor) -> tuple:
    """Second derivatives are rare: let autograd take them, through the reference."""
    with torch.enable_grad():
        given = dout, x, c = [t.detach().requires_grad_() for t in ctx.saved_tensors]
        value = full_map_reference.full_map(x, c, *ctx.options)
        first = torch.autograd.grad(value, (x, c), dout, create_graph=True)
        dout2, x2, c2 = torch.autograd.grad(first, given, (ddx, ddc), allow_unused=True)
    return dout2, None, x2, c2, None, None, None, None


_backward.register_autograd(_differentiate_twice, setup_context=_setup_second_context)


def _plan(shape: tuple[int, ...], order: int, sequences: bool, increments: bool) -> Plan:
    """Groups of sequences while their states are small, else one sequence at a time."""
    batch, points, dim = shape
    length, top = points - increments, dim**order
    lower = sum(dim**m for m in range(order))
    long = top >= _LONG and not sequences
    lanes = LANES if top < _LONG and batch >= LANES // 2 and not sequences else 1
    groups = -(-batch // lanes)
    worth = batch * length * (top + 4 * lower) // _WORTH_A_TASK
    return Plan(length, lower + top, lower, lanes, groups, max(1, min(groups, _MOST_TASKS, worth)), long)


_make_plan = lru_cache(maxsize=256)(_plan)


@lru_cache(maxsize=16)
def _tables(dim: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each level starts, and the row of each word: kernels store the newest letter first."""
    sizes = [dim**m for m in range(order + 1)]
    starts = np.cumsum([0, *sizes])
    words = [np.arange(n).reshape((dim,) * m).transpose().ravel() + starts[m] for m, n in enumerate(sizes)]
    return starts, np.concatenate(words)


def _run(name: str, plan: Plan, x: Tensor, coefficients: Tensor, options: tuple, **arrays: Tensor) -> None:
    """Describe the call in a record and start the kernels on it."""
    from seq2tens.ops._blas import addresses
    from seq2tens.ops._full_map_entry import entry

    (batch, points, dim), (order, sequences, increments) = x.shape, options
    starts, words = _tables(dim, order)
    single, double, limit_threads = addresses() if plan.long else (0, 0, 0)
    numbers, room = _room(plan, dim, order, name == "backward")
    arrays.update(x=x.contiguous(), coefficients=coefficients.double().contiguous())
    fields = {
        "batch": batch, "points": points, "dim": dim, "order": order, "lift_order": len(coefficients),
        "size": plan.size, "lower": plan.lower, "last": dim ** (order - 1), "lanes": plan.lanes,
        "groups": plan.groups, "tasks": plan.tasks, "rows": plan.length if sequences else 1, "block": _BLOCK,
        "blocks": arrays["kept"].shape[1], "learn": arrays["dc"].shape[1] if "dc" in arrays else 0,
        "numbers": numbers, "scratch_size": 8 * room, "long": plan.long,
        "sequences": sequences, "increments": increments, "starts": starts.ctypes.data,
        "words": words.ctypes.data, "gemm": single if x.dtype == torch.float32 else double,
        "limit_threads": limit_threads, **{key: tensor.data_ptr() for key, tensor in arrays.items()},
    }  # fmt: skip
    kernel = entry(f"{name}{32 if x.dtype == torch.float32 else 64}")
    record = array("q", [int(fields.get(field, 0)) for field in _FIELDS])
    launch(kernel.address, record, _AT, plan.tasks)


def _room(plan: Plan, dim: int, order: int, backward: bool) -> tuple[int, int]:
    """Float64 numbers of a thread's scratch, and all of it: whole cache lines, which vectors should fill."""
    steps, n = (_BLOCK + 1) * dim, dim ** (order - 1)
    if backward:
        numbers = (_BLOCK + 2) * plan.lower + 2 * steps + (plan.lower if plan.long else plan.size)
    else:
        numbers = plan.size + plan.lower + steps
    numbers *= plan.lanes
    products = [_BLOCK * dim, _BLOCK * n, _BLOCK * n, dim * n] if plan.long else []
    return numbers, sum(-(-count // LANES) * LANES for count in (numbers, *products))
