"""The recursion on CPUs: fused numba kernels as custom operations of torch, forward and backward.

`_tasks` packs the tensors and shares out the work, `_kernels` does the arithmetic on torch's threads; it is
imported, with numba, on the first call.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from seq2tens._checks import in_func_transform
from seq2tens.ops._calls import AT
from seq2tens.ops._memory import empty
from seq2tens.ops._operation import (
    BACKWARD_SCHEMA,
    FORWARD_SCHEMA,
    Inputs,
    Pair,
    call,
    register_derivatives,
)
from seq2tens.ops._tasks import Call, states_are_levels, steps_per_block
from seq2tens.ops._threads import launch
from seq2tens.ops.chains import Chains


def why_not(x: Tensor, *others: Tensor) -> str | None:
    """Why this backend cannot run for these tensors; None if it can."""
    if x.device.type != "cpu":
        return f"`x` is on {x.device}"
    if any(in_func_transform(t) for t in (x, *others)):
        return "it has no rules for torch.func transforms; the reference has"
    return None


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
    return call(_pair, tensors, chains, reverse, return_sequences)


def _compute(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Levels along time, final state, and the state before every block of steps."""
    inputs = Inputs(*arguments)
    call = Call(inputs)
    out, final, kept = empty_results(inputs, empty)
    call.set(state=inputs.state.contiguous(), out=out, final=final, kept=kept)
    run("forward", call)
    return out, final, kept


_register = torch.library.custom_op(
    "seq2tens::ls2t", mutates_args=(), device_types="cpu", schema=FORWARD_SCHEMA
)
_forward = _register(_compute)


@_forward.register_fake
def _(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    return empty_results(Inputs(*arguments))


def empty_results(inputs: Inputs, new: Any = None) -> tuple[Tensor, Tensor, Tensor]:
    """Memory for levels, final state and kept states."""
    blocks = -(-inputs.x.shape[1] // steps_per_block(tuple(inputs.weight.shape)))
    return inputs.empty_results(blocks, torch.float64, new)


def _compute_backward(
    dout: Tensor, dfinal: Tensor, kept: Tensor, levels: Tensor | None, by_coefficients: bool, *arguments: Any
) -> tuple[Tensor, ...]:
    """Derivatives by x, weight, bias, coefficients (0 unless asked for), powers and state."""
    inputs = Inputs(*arguments)
    call = Call(inputs, by_coefficients)
    dx = empty((call.plan.groups, *inputs.x.shape), inputs.x.dtype)
    dstate = inputs.x.new_empty(inputs.state.shape)
    call.set(out=dout.contiguous(), final=dfinal.contiguous(), kept=kept.contiguous(), dx=dx, state=dstate)
    if call.layout.joined:
        assert levels is not None
        call.set(path=levels.contiguous())
    call.new_sums()
    run("backward", call)
    run("totals", call)
    dx = dx[0] if len(dx) == 1 else dx.sum(0)
    return dx, call.dweight, call.dbias, *call.lift_totals(), dstate


_register_backward = torch.library.custom_op(
    "seq2tens::ls2t_backward", mutates_args=(), device_types="cpu", schema=BACKWARD_SCHEMA
)
_backward = _register_backward(_compute_backward)


@_backward.register_fake
def _(
    dout: Tensor, dfinal: Tensor, kept: Tensor, levels: Tensor | None, by_coefficients: bool, *arguments: Any
) -> tuple[Tensor, ...]:
    return Inputs(*arguments).empty_gradients()


def _reads_levels(inputs: Inputs) -> bool:
    """Whether the levels along time hold every state, so that the backward pass need not run them again."""
    shape = tuple(inputs.weight.shape)
    plain = inputs.powers is None and len(inputs.coefficients) == 1
    return plain and states_are_levels(shape, inputs.chains, inputs.return_sequences)


_pair = Pair(_forward, _backward, _compute, _compute_backward, _reads_levels)
register_derivatives(_pair)


def run(name: str, call: Call) -> None:
    """Let the threads do the tasks of a call."""
    record = call.record
    record[AT["gemm"]], record[AT["limit_threads"]], entry = code(name, call.inputs.x.dtype)
    launch(entry, record, AT, call.plan.tasks)


@lru_cache(maxsize=8)
def code(name: str, dtype: torch.dtype) -> tuple[int, int, int]:
    """Addresses of the matrix product, of the switch for its threads, and of the kernel."""
    from seq2tens.ops._blas import addresses
    from seq2tens.ops._kernels import entry

    single, double, limit_threads = addresses()
    if dtype == torch.float32:
        return single, limit_threads, entry(f"{name}32").address
    return double, limit_threads, entry(f"{name}64").address
