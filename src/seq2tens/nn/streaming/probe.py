"""Find out how far a module looks ahead by running it; modules do not declare it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2tens.nn.alignment import Series
from seq2tens.nn.context import NotInContext, Whole, call_in_context

if TYPE_CHECKING:
    from seq2tens.nn.layers import LS2T
    from seq2tens.nn.masked import MaskedConv

STEPS = (64, 512, 4096)  # lengths that are tried; a module that looks ahead across the longest is unbounded


class Refusals(NamedTuple):
    """Error messages for modules that cannot process a sequence in parts."""

    clock: str
    future: str


class Reach(NamedTuple):
    """Channels of the input, number of steps a module looks ahead, and whether it returns sequences."""

    channels: int
    ahead: int
    gives_sequences: bool


class Probe(Whole):
    """A context with a NaN at the last step: as far as NaNs spread before the end, a module looks ahead."""

    def __init__(self, refusals: Refusals, length: int | None) -> None:
        super().__init__()
        self.refusals, self.length, self.ahead = refusals, length, 0

    def halo(self, x: Series, before: int, after: int) -> Float[Tensor, "batch extended channels"]:
        """Extend as `Whole` does, after inspecting the steps that a stream would have to keep."""
        self.inspect(x)
        return super().halo(x, before, after)

    def difference(self, x: Series, *, reverse: bool = False) -> Series:
        """Take differences as `Whole` does, after inspecting the steps that a stream would have to keep."""
        self.inspect(x)
        return super().difference(x, reverse=reverse)

    def convolve(
        self, convolution: MaskedConv, x: Series, before: int, after: int, train_bias: bool = True
    ) -> Float[Tensor, "batch positions out_features"]:
        """Convolve as `Whole` does, after inspecting the steps that a stream would have to keep."""
        if before + after > 0:
            self.inspect(x)
        return super().convolve(convolution, x, before, after, train_bias)

    def clock(self, x: Series, mode: Literal["index", "centred"]) -> Float[Tensor, "batch time 1"]:
        """Return the relative time if the length is known; otherwise raise an error."""
        if self.length is None:
            raise NotInContext(self.refusals.clock.format(mode=mode))
        return super().clock(x, mode)

    def mean(self, x: Series) -> Float[Tensor, "batch channels"]:
        """Take the mean as `Whole` does, after inspecting the steps."""
        self.inspect(x)
        return super().mean(x)

    def ls2t(self, layer: LS2T, x: Series) -> Float[Tensor, "batch *time order width"]:
        """Run the recursion as `Whole` does, after inspecting the steps; refuse a reversed layer."""
        if layer.reverse:
            raise NotInContext(self.refusals.future.format(name="reverse=True"))
        self.inspect(x)
        return super().ls2t(layer, x)

    def inspect(self, x: Float[Tensor, "batch time ..."]) -> None:
        """Find the first step that depends on the last one, and update `ahead`."""
        dependent = x.isnan().flatten(2).any(2).any(0)
        if bool(dependent.any()):
            self.ahead = max(self.ahead, x.shape[1] - 1 - int(dependent.byte().argmax()))


def find_reach(
    module: nn.Module, refusals: Refusals, *, channels: int | None = None, length: int | None = None
) -> Reach:
    """Run a module, which is in evaluation mode; without `channels`, with numbers of channels to try."""
    problem: Exception | None = None
    for number in _candidates(module) if channels is None else [channels]:
        try:
            return _run(module, refusals, number, length)
        except NotInContext:
            raise
        except (ValueError, RuntimeError) as error:  # wrong number of channels
            problem = problem or error
    assert problem is not None
    raise problem


def _candidates(module: nn.Module) -> Iterator[int]:
    sizes = [getattr(part, "in_features", None) for part in module.modules()]
    known = [size for size in sizes if isinstance(size, int)]
    yield from known[:1]
    yield from range(1, max(known, default=1) + 1)


@torch.no_grad()
def _run(module: nn.Module, refusals: Refusals, channels: int, length: int | None) -> Reach:
    like = next((t for t in (*module.parameters(), *module.buffers()) if t.is_floating_point()), None)
    for steps in STEPS:
        x = torch.zeros(1, steps, channels) if like is None else like.new_zeros(1, steps, channels)
        x[:, -1] = torch.nan
        probe = Probe(refusals, length)
        y = call_in_context(module, x, probe)
        if not probe.reductions:
            probe.inspect(y)
        if probe.ahead < steps - 1:
            return Reach(channels, probe.ahead, not probe.reductions)
    raise NotInContext(refusals.future.format(name=type(module).__name__))
