"""How far a module looks ahead, found by running it: no module says it of itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2tens.nn.alignment import Series
from seq2tens.nn.context import NotInContext, Whole, call

if TYPE_CHECKING:
    from seq2tens.nn.layers import LS2T

STEPS = (64, 512, 4096)  # of sequences that are tried: a module that looks as far as the longest has no bound


class Refusals(NamedTuple):
    """What is said of modules that cannot be fed in parts."""

    clock: str
    future: str


class Reach(NamedTuple):
    """What has been found out: channels of the input, steps looked ahead, whether sequences come out."""

    channels: int
    ahead: int
    gives_sequences: bool


class Probe(Whole):
    """Sequences whose last step is NaN: how far before the end it is met, a module looks ahead."""

    def __init__(self, refusals: Refusals, length: int | None) -> None:
        super().__init__()
        self.refusals, self.length, self.ahead = refusals, length, 0

    def halo(self, x: Series, before: int, after: int) -> Float[Tensor, "batch extended channels"]:
        """As ever, with a look at the steps that will have to be kept."""
        self.look(x)
        return super().halo(x, before, after)

    def clock(self, x: Series, mode: Literal["index", "centred"]) -> Float[Tensor, "batch time 1"]:
        """Known if the length is."""
        if self.length is None:
            raise NotInContext(self.refusals.clock.format(mode=mode))
        return super().clock(x, mode)

    def mean(self, x: Series) -> Float[Tensor, "batch channels"]:
        """As ever, with a look at what is summed."""
        self.look(x)
        return super().mean(x)

    def ls2t(self, layer: LS2T, x: Series) -> Float[Tensor, "batch *time order width"]:
        """As ever, if it is the past that the layer sees."""
        if layer.reverse:
            raise NotInContext(self.refusals.future.format(name="reverse=True"))
        self.look(x)
        return super().ls2t(layer, x)

    def look(self, x: Float[Tensor, "batch time ..."]) -> None:
        """Find the first step that knows of the last."""
        tainted = x.isnan().flatten(2).any(2).any(0)
        if bool(tainted.any()):
            self.ahead = max(self.ahead, x.shape[1] - 1 - int(tainted.byte().argmax()))


def find_reach(
    module: nn.Module, refusals: Refusals, *, channels: int | None = None, length: int | None = None
) -> Reach:
    """Run a module in evaluation mode; without `channels`, with the fewest that it takes."""
    problem: Exception | None = None
    for number in _candidates(module) if channels is None else [channels]:
        try:
            return _run(module, refusals, number, length)
        except NotInContext:
            raise
        except (ValueError, RuntimeError) as error:  # of other channels
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
        y = call(module, x, probe)
        if not probe.reductions:
            probe.look(y)
        if probe.ahead < steps - 1:
            return Reach(channels, probe.ahead, not probe.reductions)
    raise NotInContext(refusals.future.format(name=type(module).__name__))
