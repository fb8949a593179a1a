"""The full map as a signature, against signature libraries."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from benchmarks.registry import Case, Prepare, Work, suite
from seq2tens.algebra import signature

BATCH = 32


def ours(backend: str) -> Callable[[Tensor, int], Tensor]:
    return lambda path, order: signature(path, order, backend=backend).flatten(scalar=False)


def pysiglib(path: Tensor, order: int) -> Tensor:
    import pysiglib.torch_api

    return pysiglib.torch_api.signature(path, order, n_jobs=-1)


def peers() -> dict[str, Callable[[Tensor, int], Tensor]]:
    """Those that are installed; the others are left out of the table."""
    found = {"pysiglib": pysiglib}
    return {name: call for name, call in found.items() if importlib.util.find_spec(name)}


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
    """Batch 32; forward alone, and forward with backward."""
    contenders = {"fused": ours("cpu"), "reference": ours("reference"), **peers()}
    for dtype in (torch.float32, torch.float64):
        for name, measure in (("forward", forward), ("training", training_step)):
            for length in (128, 1024):
                for dim, order in ((4, 2), (4, 3), (4, 4), (8, 2), (8, 3), (8, 4), (16, 2), (16, 3), (16, 4)):
                    size = (length, dim, order, dtype)
                    label = f"{str(dtype)[6:]} {name} L={length} d={dim} M={order}"
                    # the reference keeps every step of every level: too much memory for the largest shapes
                    names = [k for k in contenders if k != "reference" or length * dim**order <= 2**21]
                    yield Case(
                        "signatures", label, "fused", {k: measure(contenders[k], *size) for k in names}
                    )
