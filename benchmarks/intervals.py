"""Intervals, windows and long sequences: one sequence of 4 channels, 16 functionals of order 3."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from benchmarks.registry import Case, Prepare, Work, suite
from seq2tens.functional import PrefixLS2T, ls2t, sliding_ls2t
from seq2tens.nn import LS2T, DeepLS2T, checkpoint_chunks, time_chunks

FEATURES, WIDTH, ORDER = 4, 16, 3
STEPS = 100_000
INTERVALS, SAMPLE = 100_000, 200
LONG = 1_000_000
CHUNK = 100_000


def draw(dtype: torch.dtype, steps: int = STEPS) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, steps, FEATURES, generator=generator, dtype=dtype) / math.sqrt(steps)
    return x, torch.randn(ORDER, FEATURES, WIDTH, generator=generator, dtype=dtype)


def positions() -> tuple[Tensor, Tensor]:
    bounds = torch.randint(0, STEPS + 1, (2, INTERVALS), generator=torch.Generator().manual_seed(0))
    start, stop = bounds.sort(0).values
    return start, stop


def tables_and_queries(dtype: torch.dtype) -> Prepare:
    def prepare() -> Work:
        (x, weight), (start, stop) = draw(dtype), positions()
        return lambda: PrefixLS2T(x, weight, order=ORDER)(start, stop)

    return prepare


def queries(dtype: torch.dtype) -> Prepare:
    def prepare() -> Work:
        (x, weight), (start, stop) = draw(dtype), positions()
        prefix = PrefixLS2T(x, weight, order=ORDER)
        return lambda: prefix(start, stop)

    return prepare


def one_by_one(dtype: torch.dtype) -> Prepare:
    """One call per interval of a sample."""

    def prepare() -> Work:
        x, weight = draw(dtype)
        sample = [(a, b) for a, b in zip(*(t[:SAMPLE].tolist() for t in positions()), strict=True) if a < b]

        def work() -> None:
            for a, b in sample:
                ls2t(x[:, a:b], weight, order=ORDER, return_sequences=False)

        return work

    return prepare


@suite
def intervals() -> Iterator[Case]:
    """100 000 random intervals of 100 000 steps; one by one, 200 of them are timed and the time is scaled."""
    for dtype in (torch.float64, torch.float32):
        contenders = {
            "tables": tables_and_queries(dtype),
            "queries alone": queries(dtype),
            "one by one": one_by_one(dtype),
        }
        shares = {"one by one": SAMPLE / INTERVALS}
        yield Case("intervals", str(dtype)[6:], "tables", contenders, shares=shares)


def slide(dtype: torch.dtype, window: int, training: bool) -> Prepare:
    def prepare() -> Work:
        x, weight = draw(dtype)
        weight.requires_grad_(training)

        def work() -> object:
            y = sliding_ls2t(x, window, weight, order=ORDER)
            assert isinstance(y, Tensor)
            return torch.autograd.grad(y.sum(), weight) if training else y

        return work

    return prepare


def one_pass(dtype: torch.dtype, training: bool) -> Prepare:
    """One pass of the layer, whose windows all start at the beginning of the sequence."""

    def prepare() -> Work:
        x, weight = draw(dtype)
        weight.requires_grad_(training)

        def work() -> object:
            y = ls2t(x, weight, order=ORDER)
            assert isinstance(y, Tensor)
            return torch.autograd.grad(y.sum(), weight) if training else y

        return work

    return prepare


@suite
def windows() -> Iterator[Case]:
    """All windows of 10 to 10 000 steps of a sequence of 100 000, against one pass of the layer."""
    for dtype in (torch.float64, torch.float32):
        for name, training in (("forward", False), ("training", True)):
            contenders = {f"window {w}": slide(dtype, w, training) for w in (100, 10, 1000, 10_000)}
            contenders["layer"] = one_pass(dtype, training)
            yield Case("windows", f"{str(dtype)[6:]} {name}", "window 100", contenders)


def whole_step(make: Callable[[], nn.Module], steps: int) -> Prepare:
    def prepare() -> Work:
        torch.manual_seed(0)
        module, (x, _) = make().eval(), draw(torch.float32, steps)
        parameters = list(module.parameters())
        return lambda: torch.autograd.grad(module(x).square().mean(), parameters)

    return prepare


def chunked_step(make: Callable[[], nn.Module], steps: int) -> Prepare:
    def prepare() -> Work:
        torch.manual_seed(0)
        module, (x, _) = make().eval(), draw(torch.float32, steps)
        parameters = list(module.parameters())

        def work() -> object:
            outputs, _ = checkpoint_chunks(module, time_chunks(x, CHUNK))
            return torch.autograd.grad(outputs[-1].square().mean(), parameters)

        return work

    return prepare


@suite
def long_sequences() -> Iterator[Case]:
    """A training step on one long sequence, float32, in chunks of 100 000 steps and in one call."""
    layer = lambda: LS2T(FEATURES, WIDTH, ORDER, return_sequences=False)  # noqa: E731
    deep = lambda: DeepLS2T(FEATURES, WIDTH, 3, ORDER)  # noqa: E731
    for name, make, steps in (("LS2T", layer, 10 * LONG), ("DeepLS2T", deep, LONG)):
        contenders = {"chunks": chunked_step(make, steps), "one call": whole_step(make, steps)}
        yield Case("long_sequences", f"{name} L={steps}", "chunks", contenders, memory=True)
