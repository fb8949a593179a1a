"""The LS2T recursion as one differentiable operation, and the only place where a backend is chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from seq2tens._checks import choice
from seq2tens.ops import cpu, reference, triton
from seq2tens.ops.chains import Chains, make_chains

Backend = Literal["auto", "reference", "cpu", "triton"]
_FUSED: dict[str, Any] = {"cpu": cpu, "triton": triton}

__all__ = ["Backend", "Chains", "accumulation_dtype", "backends", "ls2t", "make_chains"]


def backends() -> dict[str, str | None]:
    """The backends, and why one cannot run on this machine; None if it can."""
    gpu = torch.empty(0, device="cuda" if torch.cuda.is_available() else "cpu")
    return {"reference": None, "cpu": cpu.why_not(torch.empty(0)), "triton": triton.why_not(gpu)}


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
    dtype = accumulation_dtype(x, weight)
    x, weight, bias = x.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)
    coefficients = x.new_ones(1) if coefficients is None else coefficients.to(x)
    powers = None
    if decay is not None:
        powers = decay.to(dtype) ** torch.arange(max(chains.depth) + 1, device=x.device)[:, None]
    if state is None:
        state = x.new_zeros(x.shape[0], len(chains.component), weight.shape[-1])
    tensors = (x, weight, bias, coefficients, powers, mask, state.to(dtype))
    return _choose(backend, tensors, chains)(*tensors, chains, reverse, return_sequences)


def _choose(
    backend: Backend | None, tensors: tuple[Tensor | None, ...], chains: Chains
) -> Callable[..., tuple[Tensor, Tensor]]:
    """The implementation for these tensors; a backend asked for by name runs or raises."""
    choice("backend", backend, (None, "auto", "reference", "cpu", "triton"))
    x, weight, *_ = tensors
    assert x is not None
    assert weight is not None
    automatic = backend in (None, "auto")
    if backend == "reference" or (automatic and _is_small(x, weight, len(chains.component))):
        return reference.ls2t
    name = ("triton" if x.device.type == "cuda" else "cpu") if automatic else backend
    reason = _FUSED[str(name)].why_not(*(t for t in tensors if t is not None))
    if reason and not automatic:
        raise RuntimeError(f"`backend` {backend!r} cannot run here: {reason}")
    return reference.ls2t if reason else _FUSED[str(name)].ls2t


def _is_small(x: Tensor, weight: Tensor, states: int) -> bool:
    """Whether a fused call costs more than it saves: one state, which is a mere sum, of few numbers."""
    if torch.compiler.is_compiling():
        return False
    return states == 1 and x.shape[0] * x.shape[1] * weight.shape[2] < 4096
