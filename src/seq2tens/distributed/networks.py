"""Networks on sequences that are split over ranks along time.

Each function does what its module's `forward` does, with the steps around the chunk where those matter.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from seq2tens import _checks as check
from seq2tens import functional as F
from seq2tens.distributed.chunk import Chunk
from seq2tens.distributed.layer import met
from seq2tens.nn import FCN, FCNLS2T, LS2T, BiLS2T, DeepLS2T, LS2TBlock, LS2TState, ResNet
from seq2tens.nn.alignment import align, restore
from seq2tens.nn.convolutional import ConvBlock, ConvStack, ResidualBlock
from seq2tens.nn.synchronised import Peers, synchronised


def sequence_parallel(module: nn.Module, group: ProcessGroup | None = None) -> SequenceParallel:
    """Let all ranks of a group run a module together on sequences that are split over them along time.

    `module` is a layer, block or network of `seq2tens.nn`, with the same weights on all ranks; it keeps its
    parameters and can still be used by itself. Results and gradients are those of one process. Gradients of
    parameters are each rank's part, see `sum_gradients`.
    """
    known = run.dispatch(type(module)) is not run.dispatch(object)
    check.require(known, f"`module` must be a layer or network of seq2tens.nn, got {type(module).__name__}")
    return SequenceParallel(module, group)


class SequenceParallel(nn.Module):
    """What `sequence_parallel` makes; its `module` is the one it was given."""

    def __init__(self, module: nn.Module, group: ProcessGroup | None = None) -> None:
        super().__init__()
        self.module, self.group = module, group

    def forward(
        self,
        x: Float[Tensor, "batch time in_features"],
        mask: Bool[Tensor, "batch time"] | None = None,
        lengths: Int[Tensor, " batch"] | None = None,
    ) -> Tensor:
        """The output for the chunk's steps, or, of a network that returns none, the whole sequence's.

        `x` is this rank's chunk, which may have no steps; `mask` and `lengths` are the chunk's. All ranks
        must call this together, and then go backwards, each through its result.
        """
        check.sequences("x", x)
        channels = getattr(self.module, "in_features", x.shape[2])
        check.require(x.shape[2] == channels, f"`x` must have {channels} channels, got {x.shape[2]}")
        mask = check.step_mask(x, mask, lengths)
        time = x.shape[1]
        if time == 0:  # a step that does not count stands for none
            x, mask = nn.functional.pad(x, (0, 0, 0, 1)), x.new_zeros(x.shape[0], 1, dtype=torch.bool)
        source = None
        if not isinstance(self.module, LS2T | BiLS2T):  # which see to gaps themselves
            x, mask, source = align(x, mask, None)
        with synchronised(self.module, Peers(self.group)):
            y = run(self.module, x, Chunk(x, mask, self.group))
        return restore(y, source)[:, :time] if returns_sequences(self.module) else y


def returns_sequences(module: nn.Module) -> bool:
    """Whether the output has a time axis."""
    if isinstance(module, BiLS2T | LS2TBlock):
        return returns_sequences(module.past if isinstance(module, BiLS2T) else module.ls2t)
    return bool(getattr(module, "return_sequences", False))


@singledispatch
def run(module: Any, x: Tensor, chunk: Chunk) -> Tensor:
    """The output of a module for an aligned chunk."""
    raise TypeError(f"{type(module).__name__} cannot be split along time")


@run.register
def _(module: LS2T, x: Tensor, chunk: Chunk) -> Tensor:
    transfer = F.transfer(x, mask=chunk.mask, **_functionals(module))
    if module.return_sequences:
        after = chunk.total - chunk.before - chunk.counts[chunk.rank]
        steps = after if module.reverse else chunk.before
        state = LS2TState(met(transfer, module.reverse, chunk.group), steps)
        return module(x, chunk.mask, state=state)
    final = met(transfer, module.reverse, chunk.group, whole=True)
    levels = final[:, list(transfer.chains.output)]
    if module.exponent_logit is None:
        return levels
    return F.normalize_levels(levels, module.exponent_logit.sigmoid(), chunk.total)


def _functionals(layer: LS2T) -> dict[str, Any]:
    """What a layer gives to `functional.ls2t`."""
    return {
        "weight": layer.weight,
        "bias": layer.bias,
        "order": layer.order,
        "weights": layer.weights,
        "lift_order": layer.lift_order,
        "lift_coefficients": None if layer.lift is None else torch.cat([layer.lift.new_ones(1), layer.lift]),
        "decay": layer.decay if layer.decay_logit is None else layer.decay_logit.sigmoid(),
        "reverse": layer.reverse,
        "backend": layer.backend,
    }


@run.register
def _(module: BiLS2T, x: Tensor, chunk: Chunk) -> Tensor:
    return torch.cat([run(module.past, x, chunk), run(module.future, x, chunk)], dim=-1)


@run.register
def _(module: LS2TBlock, x: Tensor, chunk: Chunk) -> Tensor:
    if module.time == "index" or module.time == "centred":
        x = torch.cat([chunk.clock(x, module.time), x], dim=2)
    if module.difference:
        x = x - chunk.extended(x, 1, 0)[:, :-1]
    y = run(module.ls2t, x, chunk)
    if module.norm is not None:
        y = module.norm(y, chunk.mask if module.ls2t.return_sequences else None)
    return chunk.dropout(y.flatten(-2), module.spatial_dropout, module.training)


@run.register
def _(module: DeepLS2T, x: Tensor, chunk: Chunk) -> Tensor:
    for block in module.blocks:
        x = run(block, x, chunk)
    return x


@run.register
def _(module: ConvBlock, x: Tensor, chunk: Chunk) -> Tensor:
    conv, norm, kernel = module.conv, module.norm, module.conv.weight.shape[2]
    before = (kernel - 1) // 2
    wide = chunk.extended(x, before, kernel // 2)
    y = norm(conv(wide, train_bias=not norm.training)[:, before : before + x.shape[1]], chunk.mask)
    return chunk.dropout(y.relu() if module.activation else y, module.spatial_dropout, module.training)


@run.register
def _(module: ConvStack, x: Tensor, chunk: Chunk) -> Tensor:
    for block in module.blocks:
        clock = [chunk.clock(x, "centred")] if module.time_embedding else []
        x = run(block, torch.cat([*clock, x], dim=2), chunk)
    return x


@run.register
def _(module: ResidualBlock, x: Tensor, chunk: Chunk) -> Tensor:
    return (run(module.convolutions, x, chunk) + run(module.shortcut, x, chunk)).relu()


@run.register
def _(module: FCN, x: Tensor, chunk: Chunk) -> Tensor:
    y = run(module.convolutions, x, chunk)
    if not module.return_sequences:
        return chunk.dropout(chunk.mean(y), module.dropout, module.training)
    return nn.functional.dropout(y, module.dropout, module.training)


@run.register
def _(module: ResNet, x: Tensor, chunk: Chunk) -> Tensor:
    for block in module.blocks:
        x = run(block, x, chunk)
    return chunk.mean(x)


@run.register
def _(module: FCNLS2T, x: Tensor, chunk: Chunk) -> Tensor:
    near = run(module.fcn, x, chunk)
    start = _merge(module.fcn_norm(near, chunk.mask), run(module.input_shortcut, x, chunk))
    far = run(module.ls2t, start, chunk)
    pooled = module.fcn_shortcut(chunk.mean(near)[:, None])[:, 0]
    return chunk.dropout(_merge(far, pooled), module.dropout, module.training)


def _merge(a: Tensor, b: Tensor) -> Tensor:
    return (a + b) * math.sqrt(0.5)
