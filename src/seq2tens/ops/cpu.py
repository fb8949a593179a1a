"""The recursion on CPUs: fused numba kernels as custom operations of torch, forward and backward.

`_tasks` packs the tensors and shares out the work, `_kernels` does the arithmetic; the latter is imported,
with numba, on the first call.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from seq2tens._checks import in_func_transform
from seq2tens.ops._memory import use_large_pages
from seq2tens.ops._operation import BACKWARD_SCHEMA, FORWARD_SCHEMA, Inputs, call, register_derivatives
from seq2tens.ops._tasks import Sums, chain_arguments, group_arguments, make_plan, steps_per_block, to_array
from seq2tens.ops._threads import run_all
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
    return call(torch.ops.seq2tens.ls2t, tensors, chains, reverse, return_sequences)


@torch.library.custom_op("seq2tens::ls2t", mutates_args=(), device_types="cpu", schema=FORWARD_SCHEMA)
def _forward(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Levels along time, final state, and the state before every block of steps."""
    from seq2tens.ops import _kernels

    inputs = Inputs(*arguments)
    plan = make_plan(tuple(inputs.x.shape), tuple(inputs.weight.shape))
    results = _empty_results(inputs)
    use_large_pages(results[0])
    arrays = [to_array(t) for t in (inputs.state, *results)]
    switches = _switches(inputs, lifted=False)
    tasks = []
    for start, stop in plan.groups:
        group, chains = group_arguments(inputs, start, stop), chain_arguments(inputs, stop - start)
        for first, last in plan.slices:
            tasks.append((*group, *arrays, *chains, *switches, first, last, start, stop - start))
    run_all(_kernels.forward, tasks, plan.parallel)
    return results


@_forward.register_fake
def _(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    return _empty_results(Inputs(*arguments))


def _empty_results(inputs: Inputs) -> tuple[Tensor, Tensor, Tensor]:
    return inputs.empty_results(-(-inputs.x.shape[1] // steps_per_block(inputs)), torch.float64)


@torch.library.custom_op(
    "seq2tens::ls2t_backward", mutates_args=(), device_types="cpu", schema=BACKWARD_SCHEMA
)
def _backward(
    dout: Tensor, dfinal: Tensor, kept: Tensor, by_coefficients: bool, *arguments: Any
) -> tuple[Tensor, ...]:
    """Derivatives by x, weight, bias, coefficients (0 unless asked for), powers and state."""
    from seq2tens.ops import _kernels

    inputs = Inputs(*arguments)
    plan = make_plan(tuple(inputs.x.shape), tuple(inputs.weight.shape))
    dx = inputs.x.new_empty(len(plan.groups), *inputs.x.shape)
    dstate = inputs.x.new_empty(inputs.state.shape)
    incoming = [to_array(t) for t in (dout, dfinal, kept)]
    switches = _switches(inputs, lifted=by_coefficients)
    sums = Sums(inputs)
    tasks = []
    for own_dx, (start, stop) in zip(dx, plan.groups, strict=True):
        group, chains = group_arguments(inputs, start, stop), chain_arguments(inputs, stop - start)
        for first, last in plan.slices:
            gradients = (own_dx.numpy(), *sums.new(start, stop), dstate.numpy())
            tasks.append(
                (*group, *incoming, *gradients, *chains, *switches, first, last, start, stop - start)
            )
    run_all(_kernels.backward, tasks, plan.parallel)
    return dx[0] if len(plan.groups) == 1 else dx.sum(0), *sums.totals(), dstate


@_backward.register_fake
def _(
    dout: Tensor, dfinal: Tensor, kept: Tensor, by_coefficients: bool, *arguments: Any
) -> tuple[Tensor, ...]:
    return Inputs(*arguments).empty_gradients()


register_derivatives(_forward, _backward)


def _switches(inputs: Inputs, lifted: bool) -> tuple:
    """The options of the kernels, the steps per matrix product, and the matrix product."""
    plain = inputs.powers is None and inputs.coefficients.tolist() == [1.0]
    options = (
        inputs.bias is not None,
        inputs.mask is not None,
        lifted or not plain,
        inputs.reverse,
        inputs.return_sequences,
        inputs.keep,
    )
    return options, steps_per_block(inputs), _blas(inputs.x.dtype)


@lru_cache(maxsize=2)
def _blas(dtype: torch.dtype) -> tuple[int, int]:
    """Addresses of the matrix product for this dtype and of the switch for its threads."""
    from seq2tens.ops._blas import addresses

    single, double, limit = addresses()
    return (single if dtype == torch.float32 else double), limit
