"""The LS2T recursion as one differentiable operation."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from seq2tens._checks import same_device
from seq2tens.ops import dispatch
from seq2tens.ops.chains import Chains
from seq2tens.ops.ls2t import cpu, reference, triton

Backend = Literal["auto", "reference", "cpu", "triton"]

dispatch.register("ls2t", "cpu", cpu.ls2t, dispatch.cpu_unsupported)
dispatch.register("ls2t", "triton", triton.ls2t, triton.unsupported)
dispatch.register("ls2t", "reference", reference.ls2t, dispatch.always_supported)


def accumulation_dtype(*tensors: Tensor) -> torch.dtype:
    """Common dtype, at least float32: half precision overflows from level 2 on."""
    dtype = torch.float32
    for tensor in tensors:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return dtype


def ls2t(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    coefficients: Tensor | None = None,
    decay: Tensor | None = None,
    mask: Tensor | None = None,
    state: Tensor | None = None,
    *,
    chains: Chains,
    reverse: bool = False,
    return_sequences: bool = True,
    backend: Backend | None = None,
) -> tuple[Tensor, Tensor]:
    """Run the recursion over `chains`; return levels and final state, both in the accumulation dtype."""
    same_device(
        x=x, weight=weight, bias=bias, lift_coefficients=coefficients, decay=decay, mask=mask, state=state
    )
    dtype = accumulation_dtype(x, weight)
    powers = None if decay is None else _powers(decay, max(chains.depth))
    x, weight = x.to(dtype), weight.to(dtype)
    bias, state = (None if tensor is None else tensor.to(dtype) for tensor in (bias, state))
    tensors = (x, weight, bias, coefficients, powers, mask, state)
    levels, final = dispatch.run("ls2t", backend, *tensors, chains, reverse, return_sequences)
    return levels, final


def _powers(decay: Tensor, order: int) -> Tensor:
    """decay^0, …, decay^order in float64: what a step rounds away is lost at every step."""
    wide = decay if decay.device.type == "mps" else decay.double()  # which has no float64
    return wide ** torch.arange(order + 1, device=decay.device)[:, None]
