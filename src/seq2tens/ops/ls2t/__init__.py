"""The LS2T recursion as one differentiable operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from seq2tens._checks import same_device
from seq2tens.ops import dispatch
from seq2tens.ops.chains import Chains
from seq2tens.ops.ls2t import cpu, reference, triton
from seq2tens.ops.ls2t.recursion import Recursion

Backend = Literal["auto", "reference", "cpu", "triton"]
# (x, mask, state) → (levels along time, final state)
Prepared = Callable[[Tensor, Tensor | None, Tensor | None], tuple[Tensor, Tensor]]

dispatch.register("ls2t", "cpu", cpu.ls2t, cpu.unsupported)
dispatch.register("ls2t", "triton", triton.ls2t, triton.unsupported)
dispatch.register("ls2t", "reference", reference.ls2t, dispatch.always_supported)
dispatch.register("ls2t_prepared", "cpu", cpu.prepare, cpu.unsupported)
dispatch.register("ls2t_prepared", "reference", reference.prepare, dispatch.always_supported)


class Functionals(NamedTuple):
    """The functionals that the recursion computes: their parameters and options, without a sequence."""

    weight: Tensor
    bias: Tensor | None
    coefficients: Tensor | None
    decay: Tensor | None
    chains: Chains
    reverse: bool = False
    backend: Backend | None = None

    def run(
        self, x: Tensor, mask: Tensor | None, state: Tensor | None = None, return_sequences: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Return the levels and the final state of some sequences, both in the accumulation dtype."""
        recursion = self.recursion(x, mask, state, return_sequences)
        levels, final = dispatch.run("ls2t", self.backend, recursion)
        return levels, final

    def prepare(self, x: Tensor) -> Prepared:
        """Return a function like `run`, along time and without gradients, for sequences like `x`.

        What does not depend on the sequence is done here, once, so that a call for a few steps is short. The
        parameters must not change afterwards.
        """
        like = x.new_empty(0, 0, x.shape[2])  # so that the function does not keep these sequences alive
        prepared: Prepared = dispatch.run("ls2t_prepared", None, self.recursion(like, None))
        return prepared

    def recursion(
        self, x: Tensor, mask: Tensor | None, state: Tensor | None = None, return_sequences: bool = True
    ) -> Recursion:
        """Return the arguments of the operation, in the accumulation dtype."""
        weight, bias, coefficients, decay, chains, reverse, _ = self
        same_device(
            x=x, weight=weight, bias=bias, lift_coefficients=coefficients, decay=decay, mask=mask, state=state
        )
        dtype = accumulation_dtype(x, weight)
        powers = None if decay is None else _powers(decay, max(chains.depth))
        x, weight = _of_dtype(x, dtype), _of_dtype(weight, dtype)
        bias, state = (None if tensor is None else _of_dtype(tensor, dtype) for tensor in (bias, state))
        tensors = (x, weight, bias, coefficients, powers, mask, state)
        return Recursion(*tensors, chains, reverse, return_sequences)


def backends() -> dict[str, str | None]:
    """Return, for every backend of the recursion, why it cannot run on this machine; None if it can."""
    on_gpu, on_cpu = (_reasons(device) for device in ("cuda" if torch.cuda.is_available() else "cpu", "cpu"))
    return {**on_cpu, "triton": on_gpu["triton"]}


def _reasons(device: str) -> dict[str, str | None]:
    x, weight = torch.empty(1, 1, 1, device=device), torch.empty(1, 1, 1, device=device)
    chains = Chains((0,), (-1,), (0,))
    return dispatch.reasons("ls2t", Recursion(x, weight, None, None, None, None, None, chains, False, True))


def accumulation_dtype(*tensors: Tensor) -> torch.dtype:
    """Return the common dtype, but at least float32: half precision overflows from level 2 on."""
    dtype = torch.float32
    for tensor in tensors:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return dtype


def _of_dtype(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor if tensor.dtype == dtype else tensor.to(dtype)


def _powers(decay: Tensor, order: int) -> Tensor:
    """Return decay^0, …, decay^order in float64, because a rounding error would recur at every step."""
    wide = decay if decay.device.type == "mps" else decay.double()  # MPS has no float64
    return wide ** torch.arange(order + 1, device=decay.device)[:, None]
