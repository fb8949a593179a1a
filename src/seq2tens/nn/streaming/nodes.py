"""The steps of a network, window by window: nodes hold weights, and never change; states go in and come out.

All arithmetic is in float64. Sums over a million steps would drift in float32, and one step of a network is
too small for the precision to cost much.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens.nn.streaming.frame import Frame, State, Windows

SHARE = math.sqrt(0.5)  # of a branch in the sum of two, see `nn.FCNLS2T`


class Node:
    """A function of windows and a state, `(y, state) = node(x, state, frame)`."""

    ahead: int = 0  # how many more positions are provisional in the result
    selects: bool = False  # the result is that of the end alone, one position
    pointwise: ClassVar[bool] = False  # can follow a node that selects

    def __call__(self, x: Windows, state: State, frame: Frame) -> tuple[Windows, State]:
        raise NotImplementedError

    def to(self, device: torch.device | str) -> Node:
        """The same node with its weights on another device."""
        new = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, Node | Tensor):
                setattr(new, name, value.to(device))
            elif isinstance(value, nn.Module):
                setattr(new, name, copy.deepcopy(value).to(device))
            elif isinstance(value, tuple) and value and isinstance(value[0], Node):
                setattr(new, name, tuple(node.to(device) for node in value))
        return new


class Chain(Node):
    """Nodes one after the other."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = tuple(nodes)
        self.ahead = sum(node.ahead for node in nodes)
        self.selects = any(node.selects for node in nodes)

    def __call__(self, x: Windows, state: State, frame: Frame) -> tuple[Windows, State]:
        states = []
        for node, kept in zip(self.nodes, state or ((),) * len(self.nodes), strict=True):
            x, new = node(x, kept, frame)
            states.append(new)
        return x, tuple(states)


class Sum(Node):
    """The sum of two branches, then ReLU."""

    def __init__(self, long: Node, short: Node) -> None:
        self.long, self.short, self.ahead = long, short, long.ahead

    def __call__(self, x: Windows, state: State, frame: Frame) -> tuple[Windows, State]:
        before, beside = state or ((), ())
        a, before = self.long(x, before, frame)
        b, beside = self.short(x, beside, frame)
        return (a + b).relu_(), (before, beside)


class Delay(Node):
    """Nothing but patience: what a branch beside needs to have the windows of one that looks ahead."""

    def __init__(self, ahead: int) -> None:
        self.ahead = ahead

    def __call__(self, x: Windows, state: State, frame: Frame) -> tuple[Windows, State]:
        return frame.extend(x, state, self.ahead)


class Convolution(Node):
    """A convolution that keeps the length, as `nn.MaskedConv`, and ReLU if asked for."""

    def __init__(self, weight: Tensor, bias: Tensor, relu: bool = False) -> None:
        out_features, self.in_features, self.kernel = weight.shape
        self.weight = weight.permute(2, 1, 0).reshape(-1, out_features).contiguous()
        self.bias, self.relu, self.ahead = bias, relu, self.kernel // 2

    def __call__(self, x: Windows, state: State, frame: Frame) -> tuple[Windows, State]:
        check_channels(x, self.in_features)
        if self.kernel > 1:
            x, state = frame.extend(x, state, self.kernel - 1, self.ahead)
        y = torch.addmm(self.bias, self._neighbours(x), self.weight).view(x.shape[0], -1, len(self.bias))
        return frame.clear(y.relu_() if self.relu else y), state

    def _neighbours(self, x: Windows) -> Tensor:
        """A row for each output: the values around it, which lie one after the other in memory."""
        if self.kernel == 1:
            return x.reshape(-1, x.shape[2])
        rows, places, channels = x.shape
        shape = (rows, places - self.kernel + 1, self.kernel * channels)
        return x.as_strided(shape, (places * channels, channels, 1)).reshape(-1, shape[2])


class Difference(Node):
    """Increments."""

    def __call__(self, x: Windows, state: State, frame: Frame) -> tuple[Windows, State]:
        windows, state = frame.extend(x, state, 1)
        return windows[:, 1:] - windows[:, :-1], state


class Lags(Node):
    """Earlier values beside each value."""

    def __init__(self, offsets: Sequence[int]) -> None:
        self.offsets = tuple(offsets)

    def __call__(self, x: Windows, state: State, frame: Frame) -> tuple[Windows, State]:
        longest, count = max(self.offsets), x.shape[1]
        if longest > 0:
            x, state = frame.extend(x, state, longest)
        places = [longest - offset for offset in self.offsets]
        return torch.cat([x[:, place : place + count] for place in places], dim=2), state


class Clock(Node):
    """Time before the channels, as `functional.time_embedding` has it for a sequence of `length` steps."""

    def __init__(self, length: int, mode: str) -> None:
        self.length, self.mode = length, mode

    def __call__(self, x: Windows, state: State, frame: Frame) -> tuple[Windows, State]:
        index = frame.positions(x.shape[1], x.device).to(x.dtype)
        if self.mode == "index":
            time = (index + 1) / self.length
        else:
            time = 2 * index / (self.length - 1) - 1 if self.length > 1 else 0 * index
        return frame.clear(torch.cat([time[..., None], x], dim=2)), state


class Last(Node):
    """The end alone."""

    selects = True

    def __call__(self, x: Windows, state: State, frame: Frame) -> tuple[Windows, State]:
        return x if frame.each else x[:, -1:], ()


class Mean(Node):
    """The mean over all steps."""

    selects = True

    def __call__(self, x: Windows, state: State, frame: Frame) -> tuple[Windows, State]:
        sums = x[:, : frame.stride].sum(1).view(frame.batch, frame.ends, -1)
        if frame.ends > 1:
            sums = sums.cumsum(1)
        if isinstance(state, Tensor):
            sums = sums + state
        totals = sums.view(x.shape[0], -1) + x[:, frame.stride :].sum(1)
        return (totals / frame.steps(x.device))[:, None], sums[:, -1:].clone()


class Affine(Node):
    """Scale and shift of each channel: what a batch normalisation is in the end."""

    pointwise = True

    def __init__(self, scale: Tensor, shift: Tensor, flatten: bool = False) -> None:
        self.scale, self.shift, self.flatten = scale, shift, flatten

    def __call__(self, x: Windows, state: State, frame: Frame) -> tuple[Windows, State]:
        x = x.flatten(2) if self.flatten else x
        return frame.clear(torch.addcmul(self.shift, x, self.scale)), ()


class Pointwise(Node):
    """A module that treats every step by itself or, at the end, one vector per sequence."""

    pointwise = True

    def __init__(self, module: nn.Module, at_end: bool = False) -> None:
        self.module, self.at_end = copy.deepcopy(module).double().eval(), at_end

    def __call__(self, x: Windows, state: State, frame: Frame) -> tuple[Windows, State]:
        if self.at_end:
            return self.module(x.flatten(0, 1)).unflatten(0, x.shape[:2]), ()
        return frame.clear(self.module(x)), ()


class NearAndFar(Node):
    """FCN-LS2T: convolutions, LS2T layers on top of them, shortcuts beside both."""

    selects = True

    def __init__(self, near: Node, norm: Node, shortcut: Node, far: Node, pooled: Node) -> None:
        self.near, self.norm, self.shortcut, self.far, self.pooled = near, norm, shortcut, far, pooled
        self.ahead = near.ahead

    def __call__(self, x: Windows, state: State, frame: Frame) -> tuple[Windows, State]:
        a, b, c, d = state or ((), (), (), ())
        near, a = self.near(x, a, frame)
        beside, b = self.shortcut(x, b, frame)
        start = (self.norm(near, (), frame)[0] + beside) * SHARE
        far, c = self.far(start, c, frame)
        pooled, d = self.pooled(near, d, frame)
        return (far + pooled) * SHARE, (a, b, c, d)


def check_channels(x: Windows, expected: int) -> None:
    """Require the channels of a layer."""
    if x.shape[2] != expected:
        raise check.ArgumentError(f"`chunk` must have {expected} channels (in_features), got {x.shape[2]}")
