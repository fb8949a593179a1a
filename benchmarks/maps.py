"""The full map as a signature, against signature libraries."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from functools import lru_cache, partial

import torch
from torch import Tensor

from benchmarks.registry import Case, Prepare, Work, suite
from seq2tens.algebra import signature

BATCH = 32
LARGE = 2**22


def ours(backend: str) -> Callable[[Tensor, int], Tensor]:
    return lambda path, order: signature(path, order, backend=backend).flatten(scalar=False)


def pysiglib(path: Tensor, order: int) -> Tensor:
    import pysiglib.torch_api

    return pysiglib.torch_api.signature(path, order, n_jobs=-1)


class _IISignature(torch.autograd.Function):
    """iisignature works on arrays; the backward pass is its own derivative."""

    @staticmethod
    def forward(ctx, path: Tensor, order: int) -> Tensor:  # type: ignore[no-untyped-def]
        import iisignature

        ctx.save_for_backward(path)
        ctx.order = order
        return torch.from_numpy(iisignature.sig(path.numpy(), order)).to(path.dtype)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple:  # type: ignore[no-untyped-def]
        import iisignature

        (path,) = ctx.saved_tensors
        derivative = iisignature.sigbackprop(gradient.numpy(), path.numpy(), ctx.order)
        return torch.from_numpy(derivative).to(path.dtype), None


class _Signax(torch.autograd.Function):
    """signax runs in JAX: compiled once per shape, without copies, and with derivatives by JAX."""

    @staticmethod
    def forward(ctx, path: Tensor, order: int) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(path)
        ctx.order = order
        return torch.from_dlpack(_signax_functions(order)[0](_to_jax(path)))

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple:  # type: ignore[no-untyped-def]
        (path,) = ctx.saved_tensors
        return torch.from_dlpack(_signax_functions(ctx.order)[1](_to_jax(path), _to_jax(gradient))), None


def _to_jax(tensor: Tensor):  # type: ignore[no-untyped-def]
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax.dlpack.from_dlpack(tensor.detach().contiguous())


@lru_cache(maxsize=8)
def _signax_functions(order: int):  # type: ignore[no-untyped-def]
    import jax
    import signax

    call = partial(signax.signature, depth=order)
    return jax.jit(call), jax.jit(lambda path, gradient: jax.vjp(call, path)[1](gradient)[0])


def peers() -> dict[str, Callable[[Tensor, int], Tensor]]:
    """The libraries that are installed; the table leaves out the others."""
    every = {"pysiglib": pysiglib, "iisignature": _IISignature.apply, "signax": _Signax.apply}
    return {name: call for name, call in every.items() if importlib.util.find_spec(name)}


def forward(call: Callable, length: int, dim: int, order: int, dtype: torch.dtype) -> Prepare:
    def prepare() -> Work:
        path = (
            torch.randn(BATCH, length, dim, generator=torch.Generator().manual_seed(0)).to(dtype).cumsum(1)
            / 8
        )

        def work() -> object:
            with torch.no_grad():
                return call(path, order)

        return work

    return prepare


def training_step(call: Callable, length: int, dim: int, order: int, dtype: torch.dtype) -> Prepare:
    def prepare() -> Work:
        path = (
            torch.randn(BATCH, length, dim, generator=torch.Generator().manual_seed(0)).to(dtype).cumsum(1)
            / 8
        )
        path.requires_grad_()
        gradient = torch.ones_like(call(path.detach(), order))
        return lambda: torch.autograd.grad(call(path, order), path, gradient)

    return prepare


@suite
def signatures() -> Iterator[Case]:
    """Signatures of batches of 32: forward pass, and forward with backward pass."""
    contenders = {"fused": ours("cpu"), "reference": ours("reference"), **peers()}
    for dtype in (torch.float32, torch.float64):
        for name, measure in (("forward", forward), ("training", training_step)):
            for length in (128, 1024):
                for dim, order in ((4, 2), (4, 3), (4, 4), (8, 2), (8, 3), (8, 4), (16, 2), (16, 3), (16, 4)):
                    size = (length, dim, order, dtype)
                    label = f"{str(dtype)[6:]} {name} L={length} d={dim} M={order}"
                    # the others take minutes, or all memory, for the largest shapes
                    names = [
                        k for k in contenders if k in ("fused", "pysiglib") or length * dim**order <= LARGE
                    ]
                    yield Case(
                        "signatures", label, "fused", {k: measure(contenders[k], *size) for k in names}
                    )
