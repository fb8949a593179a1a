"""The recursion on GPUs: Triton kernels as custom operations of torch, forward and backward.

Time is cut into chunks. torch multiplies a chunk by the weights, a kernel scans the products, and the state
at the end of the chunk enters the next one; the projections of the whole sequence are never in memory at
once. For each chunk, the backward pass repeats the scan from a state that the forward pass saved, then walks
back through the steps. Triton is imported on the first call. With TRITON_INTERPRET=1 in the environment it
runs on CPUs, for tests.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seq2tens._checks import in_func_transform
from seq2tens.ops.chains import Chains
from seq2tens.ops.dispatch import full_precision
from seq2tens.ops.ls2t.autograd import Kernels, call, register_operations
from seq2tens.ops.ls2t.recursion import Gradients, Recursion, Results, Saved

CHUNK = 128  # steps per matrix product; the backward pass holds the states of one chunk
MANY_LANES = 2**15  # fewer lanes are cut into smaller programs, so that every multiprocessor gets some
_MISSING = "triton is not installed: pip install 'seq2tens[triton]'"


def unsupported(recursion: Recursion) -> str | None:
    """Return why this backend cannot handle these arguments; None if it can."""
    x = recursion.x
    if x.device.type != "cuda" and not _interpreted():
        return f"`x` is on {x.device} and TRITON_INTERPRET is not 1"
    if any(in_func_transform(t) for t in recursion.tensors if t is not None):
        return "it has no rules for torch.func transforms; use the reference"
    return None if _installed() else _MISSING


def _interpreted() -> bool:
    # torch.compile cannot read the environment; while it traces, rely on the check of the kernels themselves
    return torch.compiler.is_compiling() or os.environ.get("TRITON_INTERPRET") == "1"


def _installed() -> bool:
    return torch.compiler.is_compiling() or importlib.util.find_spec("triton") is not None


def _kernels() -> Any:
    if not _installed():
        raise ImportError(_MISSING)
    return importlib.import_module("seq2tens.ops.ls2t.triton_kernels")


def ls2t(recursion: Recursion) -> tuple[Tensor, Tensor]:
    """Compute the same as `reference.ls2t`."""
    return call(_pair, recursion)


def _forward(inputs: Recursion, keeps_products: bool) -> Results:
    """Return the levels along time, the final state, and the state before every chunk."""
    results = out, state, saved = _empty_results(inputs)
    state.zero_() if inputs.state is None else state.copy_(inputs.state)
    work, levels = _Work(inputs), out if inputs.return_sequences else None
    with full_precision(inputs.x):
        for index, steps in enumerate(_chunks(inputs)):
            if saved.checkpoints is not None:
                saved.checkpoints[:, index] = state
            work.scan(work.chunk(steps), state, levels, path=None)
    return results


def _empty_results(inputs: Recursion) -> Results:
    return inputs.empty_results(-(-inputs.x.shape[1] // CHUNK), inputs.x.dtype)


def _backward(dout: Tensor | None, dfinal: Tensor | None, saved: Saved, inputs: Recursion) -> Gradients:
    """Return gradients of x, weight, bias, coefficients, powers and state, None for a missing one."""
    results = dx, dweight, *_ = inputs.empty_gradients()
    assert dx is not None
    assert dweight is not None
    assert saved.checkpoints is not None
    adjoint = torch.zeros_like(saved.checkpoints[:, 0], memory_format=torch.contiguous_format)
    if dfinal is not None:
        adjoint.copy_(dfinal)
    work = _Work(inputs)
    flow = None if dout is None or not inputs.return_sequences else dout.contiguous()
    dw, db = torch.zeros_like(work.weight), torch.zeros_like(work.weight[0])
    dc, dp = work.new_sums(len(work.coefficients)), work.new_sums(max(inputs.chains.depth) + 1)
    sums = (None if inputs.coefficients is None else dc, None if inputs.powers is None else dp)
    with full_precision(inputs.x):
        for index, steps in reversed(list(enumerate(_chunks(inputs)))):
            chunk = work.chunk(steps)
            path = inputs.x.new_empty(*chunk.rows.shape[:2], *adjoint.shape[1:])
            state = saved.checkpoints[:, index].clone(memory_format=torch.contiguous_format)
            work.scan(chunk, state, None, path)
            da = work.retrace(chunk, adjoint, flow, path, sums)
            dx[:, steps] = torch.matmul(da, work.weight.T)
            dw += torch.matmul(chunk.rows.flatten(0, 1).T, da.flatten(0, 1))
            db += da.sum((0, 1))
    dweight.copy_(dw.view(dweight.shape[1], dweight.shape[0], -1).transpose(0, 1))
    values = (db.view(-1, dweight.shape[2]), dc.sum((0, 2)), dp.sum(0), adjoint)
    for target, value in zip(results[2:], values, strict=True):
        if target is not None:
            target.copy_(value)
    return results


_pair = register_operations("seq2tens::ls2t_triton", Kernels(_forward, _backward, _empty_results))


def _chunks(inputs: Recursion) -> list[slice]:
    """Return ranges of steps, in the order in which the recursion visits them."""
    length = inputs.x.shape[1]
    cuts = [(low, min(low + CHUNK, length)) for low in range(0, length, CHUNK)]
    return [slice(length - high, length - low) if inputs.reverse else slice(low, high) for low, high in cuts]


class _Chunk(NamedTuple):
    """A range of steps with its inputs and projections, both 0 at masked steps."""

    steps: slice
    mask: Tensor | None
    rows: Tensor
    factors: Tensor  # inner products of the rows with every vector, (batch, steps, components · width)

    def clear(self, values: Tensor) -> Tensor:
        return values if self.mask is None else torch.where(self.mask[..., None], values, 0.0)


class _Work:
    """The arguments of one call in the form that the kernels take, and the launches of the kernels."""

    def __init__(self, inputs: Recursion) -> None:
        self.inputs = inputs
        self.weight = inputs.weight.transpose(0, 1).flatten(1).contiguous()  # (features, components · width)
        coefficients = inputs.x.new_ones(1) if inputs.coefficients is None else inputs.coefficients
        self.coefficients = coefficients.to(inputs.x.dtype).contiguous()
        self.powers = None if inputs.powers is None else inputs.powers.to(inputs.x.dtype).contiguous()
        chains = inputs.chains
        self.constants = {
            "WORDS": _words(chains, len(self.coefficients)),
            "DEPTH": chains.depth,
            "OUTPUT": chains.output,
            "COMPONENTS": inputs.weight.shape[0],
            "TERMS": len(self.coefficients),
            "POWERS": max(chains.depth) + 1,
            "REVERSE": inputs.reverse,
        }

    def new_sums(self, rows: int) -> Tensor:
        """Return zeros for sums that every functional of every sequence accumulates separately."""
        return self.inputs.x.new_zeros(self.inputs.x.shape[0], rows, self.inputs.weight.shape[2])

    def chunk(self, steps: slice) -> _Chunk:
        rows = self.inputs.x[:, steps]
        mask = None if self.inputs.mask is None else self.inputs.mask[:, steps].contiguous()
        if mask is not None:  # before the product, because padding may hold NaN
            rows = torch.where(mask[..., None], rows, 0.0)
        factors = torch.matmul(rows, self.weight)
        if self.inputs.bias is not None:
            factors += self.inputs.bias.flatten()
        chunk = _Chunk(steps, mask, rows, factors)
        return chunk._replace(factors=chunk.clear(factors))

    def scan(self, chunk: _Chunk, state: Tensor, out: Tensor | None, path: Tensor | None) -> None:
        """Advance the state through the chunk, in place."""
        levels = out[:, chunk.steps] if out is not None else None
        self._launch(_kernels().scan, chunk, levels, state, path)

    def retrace(
        self,
        chunk: _Chunk,
        adjoint: Tensor,
        dout: Tensor | None,
        path: Tensor,
        sums: tuple[Tensor | None, ...],
    ) -> Tensor:
        """Propagate the adjoint back through the chunk, in place; return the gradient of the factors."""
        da = torch.empty_like(chunk.factors)
        levels = dout[:, chunk.steps] if dout is not None else None
        self._launch(_kernels().retrace, chunk, levels, adjoint, path, da, *sums)
        return chunk.clear(da)

    def _launch(self, kernel: Any, chunk: _Chunk, levels: Tensor | None, *tensors: Tensor | None) -> None:
        batch, steps, _ = chunk.rows.shape
        width = self.inputs.weight.shape[2]
        warps = 1 if batch * width < MANY_LANES else 4
        lanes = 32 * warps
        with torch.cuda.device_of(self.inputs.x):
            kernel[(-(-batch * width // lanes),)](
                chunk.factors, levels, *tensors, self.coefficients, self.powers,
                chunk.mask if self.powers is not None else None,  # without decay, zero factors are enough
                batch, width, steps, levels.stride(0) if levels is not None else 0,
                **self.constants, LANES=lanes, num_warps=warps, enable_fp_fusion=True,
            )  # fmt: skip


@lru_cache(maxsize=256)
def _words(chains: Chains, terms: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return, for every state, the factor of each of its terms and the state that the term starts from."""
    words = []
    for s in range(len(chains.parent)):
        word: list[tuple[int, int]] = []
        node = s
        while node >= 0 and len(word) < terms:
            parent = chains.parent[node]
            word.append((chains.component[node], parent if parent >= 0 else len(chains.parent)))
            node = parent
        words.append(tuple(word))
    return tuple(words)
