"""The LS2T layer against the matrix product that it contains, its reference, and other layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from benchmarks.registry import Case, Prepare, Work, suite
from seq2tens.functional import make_chains
from seq2tens.nn import LS2T

BATCH, FEATURES, WIDTH = 32, 64, 64


def draw(*shape: int, grad: bool = False) -> Tensor:
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(0)) / 8
    return x.requires_grad_(grad)


def matmul(batch: int, length: int, features: int, columns: int) -> Prepare:
    """The product with all weight vectors only, into preallocated memory."""

    def prepare() -> Work:
        x, w = draw(batch * length, features), draw(features, columns)
        out = torch.empty(batch * length, columns)
        return lambda: torch.mm(x, w, out=out)

    return prepare


def forward(
    make: type | object, batch: int, length: int, features: int, channels_first: bool = False
) -> Prepare:
    def prepare() -> Work:
        torch.manual_seed(0)
        layer = make()  # type: ignore[operator]
        x = draw(batch, features, length) if channels_first else draw(batch, length, features)

        def work() -> object:
            with torch.no_grad():
                return layer(x)

        return work

    return prepare


def training_step(
    make: object, batch: int, length: int, features: int, channels_first: bool = False
) -> Prepare:
    """Forward and backward pass, including gradients of the input."""

    def prepare() -> Work:
        torch.manual_seed(0)
        layer = make()  # type: ignore[operator]
        shape = (batch, features, length) if channels_first else (batch, length, features)
        x = draw(*shape, grad=True)
        leaves = [x, *layer.parameters()]
        with torch.no_grad():
            y = layer(x)
            gradient = torch.ones_like(y[0] if isinstance(y, tuple) else y)

        def work() -> object:
            y = layer(x)
            return torch.autograd.grad(y[0] if isinstance(y, tuple) else y, leaves, gradient)

        return work

    return prepare


def ls2t(
    order: int, weights: str, backend: str, features: int = FEATURES, width: int = WIDTH, **options: object
):
    return lambda: LS2T(features, width, order, weights=weights, backend=backend, **options)


def peers(length: int, measure) -> dict[str, Prepare]:  # type: ignore[no-untyped-def]
    size = (BATCH, length, FEATURES)
    return {
        "LSTM": measure(lambda: nn.LSTM(FEATURES, WIDTH, batch_first=True), *size),
        "GRU": measure(lambda: nn.GRU(FEATURES, WIDTH, batch_first=True), *size),
        "Conv1d k8": measure(
            lambda: nn.Conv1d(FEATURES, WIDTH, 8, padding="same"), *size, channels_first=True
        ),
        "Conv1d k32": measure(
            lambda: nn.Conv1d(FEATURES, WIDTH, 32, padding="same"), *size, channels_first=True
        ),
    }


@suite
def forward_pass() -> Iterator[Case]:
    """The paper's table: batch 32, 64 channels, width 64."""
    for length in (32, 64, 128, 256, 512, 1024):
        for order in (2, 6, 10):
            for weights in ("recursive", "independent"):
                size = (BATCH, length, FEATURES)
                contenders = {
                    "matmul": matmul(*size, make_chains(order, weights, False).components * WIDTH),
                    "fused": forward(ls2t(order, weights, "cpu"), *size),
                    "reference": forward(ls2t(order, weights, "reference"), *size),
                }
                yield Case("forward_pass", f"L={length} M={order} {weights}", "fused", contenders)


@suite
def forward_peers() -> Iterator[Case]:
    """Order 2, recursive, against other layers of width 64, one at a time, since they share caches."""
    for length in (32, 64, 128, 256, 512, 1024):
        yield from _pairs("forward_peers", length, forward)


def _pairs(suite_name: str, length: int, measure: Callable[..., Prepare]) -> Iterator[Case]:
    fused = measure(ls2t(2, "recursive", "cpu"), BATCH, length, FEATURES)
    for name, peer in peers(length, measure).items():
        yield Case(suite_name, f"L={length} {name}", "fused", {"fused": fused, "other layer": peer})


@suite
def training() -> Iterator[Case]:
    """Forward and backward pass for the same sizes, with peak memory."""
    for length in (256, 1024):
        for order in (2, 6, 10):
            for weights in ("recursive", "independent"):
                size = (BATCH, length, FEATURES)
                contenders = {
                    "fused": training_step(ls2t(order, weights, "cpu"), *size),
                    "reference": training_step(ls2t(order, weights, "reference"), *size),
                }
                yield Case(
                    "training", f"L={length} M={order} {weights}", "fused", contenders, memory=order == 10
                )


@suite
def training_peers() -> Iterator[Case]:
    """As `forward_peers`, with forward and backward pass."""
    for length in (256, 1024):
        yield from _pairs("training_peers", length, training_step)


@suite
def small() -> Iterator[Case]:
    """Small shapes, for which the overhead of a call dominates."""
    for batch in (1, 4):
        for length in (8, 32):
            for order in (1, 2, 4):
                size = (batch, length, 4)
                for name, measure in (("forward", forward), ("training", training_step)):
                    contenders = {
                        backend: measure(ls2t(order, "recursive", backend, features=4, width=8), *size)
                        for backend in ("auto", "reference")
                    }
                    yield Case("small", f"B={batch} L={length} M={order} {name}", "auto", contenders)


@suite
def long() -> Iterator[Case]:
    """One sequence, d = 4, width 32, order 3: time and memory should grow linearly with the length."""
    for length in (10_000, 100_000, 1_000_000):
        size = (1, length, 4)
        contenders = {
            "forward": forward(ls2t(3, "recursive", "cpu", features=4, width=32), *size),
            "training": training_step(ls2t(3, "recursive", "cpu", features=4, width=32), *size),
        }
        yield Case("long", f"L={length}", "forward", contenders, memory=True)
