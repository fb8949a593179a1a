"""From modules to nodes: what each layer, block and network is when it is fed step by step."""

from __future__ import annotations

import math
from functools import singledispatch

import torch
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens import ops
from seq2tens.nn.blocks import DeepLS2T, LevelNorm, LS2TBlock
from seq2tens.nn.layers import LS2T, BiLS2T
from seq2tens.nn.masked import MaskedBatchNorm, MaskedConv
from seq2tens.nn.convolutional import FCN, ConvBlock, ConvStack, ResidualBlock, ResNet
from seq2tens.nn.networks import FCNLS2T
from seq2tens.nn.paths import Difference, Lags, TimeEmbedding
from seq2tens.nn.streaming import nodes
from seq2tens.nn.streaming.levels import Levels
from seq2tens.nn.streaming.nodes import Chain, Node

# Modules that treat every step, and every vector, by itself.
POINTWISE = (
    nn.Linear, nn.LayerNorm, nn.Flatten, nn.Unflatten, nn.Identity, nn.Dropout, nn.ReLU, nn.LeakyReLU,
    nn.GELU, nn.SiLU, nn.ELU, nn.Tanh, nn.Sigmoid, nn.Softplus,
)  # fmt: skip
NEEDS_LENGTH = (
    "`length` must be given for a network that sees the time of a step as a share of the whole sequence "
    "(`time_embedding`): that depends on how many steps there will be. Build the network with "
    "`time_embedding=False` for a stream without end"
)


@singledispatch
def plan(module: nn.Module, length: int | None) -> list[Node]:
    """The nodes of a module, one after the other, with its weights as they are now."""
    if isinstance(module, POINTWISE):
        return [nodes.Pointwise(module)]
    raise check.ArgumentError(
        "`module` must be made of LS2T layers, LS2T blocks, the networks DeepLS2T, FCN, ResNet and FCNLS2T, "
        "path transforms and modules that treat every step by itself, in sequence, to be streamed; "
        f"got {type(module).__name__}"
    )


@plan.register
def _(module: nn.Sequential, length: int | None) -> list[Node]:
    found: list[Node] = []
    for child in module:
        ended = any(node.selects for node in found)
        new = plan(child, length)
        check.require(
            not ended or all(node.pointwise for node in new),
            f"`module` must not go on with {type(child).__name__} where one vector per sequence is left; "
            "`return_sequences=True` keeps the steps",
        )
        found += [nodes.Pointwise(child, at_end=True)] if ended and isinstance(child, POINTWISE) else new
    return found


@plan.register
def _(module: Difference, length: int | None) -> list[Node]:
    return [nodes.Difference()]


@plan.register
def _(module: Lags, length: int | None) -> list[Node]:
    return [nodes.Lags(range(module.steps + 1) if isinstance(module.steps, int) else module.steps)]


@plan.register
def _(module: TimeEmbedding, length: int | None) -> list[Node]:
    return [_clock(length, module.mode)]


@plan.register
def _(module: BiLS2T, length: int | None) -> list[Node]:
    raise check.ArgumentError("`module` must not look at the future to be streamed, got BiLS2T")


@plan.register
def _(module: LS2T, length: int | None) -> list[Node]:
    check.require(not module.reverse, "`module` must not look at the future to be streamed, got reverse=True")
    levels = Levels(
        _double(module.weight),
        None if module.bias is None else _double(module.bias),
        ops.make_chains(module.order, module.weights, reverse=False),
        coefficients=_coefficients(module),
        decay=_decay(module),
        exponent=None if module.exponent_logit is None else _double(module.exponent_logit).sigmoid(),
        backend=module.backend,
    )
    return [levels] if module.return_sequences else [levels, nodes.Last()]


@plan.register
def _(module: LS2TBlock, length: int | None) -> list[Node]:
    found: list[Node] = []
    if module.time in ("index", "centred"):
        found.append(_clock(length, module.time))
    if module.difference:
        found.append(nodes.Difference())
    found += plan(module.ls2t, length)
    if module.norm is None:
        return [*found, nodes.Pointwise(nn.Flatten(2))]
    scale, shift = (vector.repeat_interleave(module.ls2t.width) for vector in _factors(module.norm))
    return [*found, nodes.Affine(scale, shift, flatten=True)]


@plan.register
def _(module: DeepLS2T, length: int | None) -> list[Node]:
    return [node for block in module.blocks for node in plan(block, length)]


@plan.register
def _(module: MaskedConv, length: int | None) -> list[Node]:
    return [nodes.Convolution(_double(module.weight), _double(module.bias))]


@plan.register
def _(module: MaskedBatchNorm, length: int | None) -> list[Node]:
    return [nodes.Affine(*_factors(module))]


@plan.register
def _(module: LevelNorm, length: int | None) -> list[Node]:
    scale, shift = _factors(module)
    return [nodes.Affine(scale[:, None], shift[:, None])]


@plan.register
def _(module: ConvBlock, length: int | None) -> list[Node]:
    return [_folded(module)]


@plan.register
def _(module: ConvStack, length: int | None) -> list[Node]:
    found: list[Node] = []
    for block in module.blocks:
        if module.time_embedding:
            found.append(_clock(length, "centred"))
        found += plan(block, length)
    return found


@plan.register
def _(module: FCN, length: int | None) -> list[Node]:
    convolutions = plan(module.convolutions, length)
    return convolutions if module.return_sequences else [*convolutions, nodes.Mean()]


@plan.register
def _(module: ResidualBlock, length: int | None) -> list[Node]:
    long = Chain(plan(module.convolutions, length))
    short = Chain([_folded(module.shortcut), nodes.Delay(long.ahead)])
    return [nodes.Sum(long, short)]


@plan.register
def _(module: ResNet, length: int | None) -> list[Node]:
    return [*(node for block in module.blocks for node in plan(block, length)), nodes.Mean()]


@plan.register
def _(module: FCNLS2T, length: int | None) -> list[Node]:
    near = Chain(plan(module.fcn, length))
    return [
        nodes.NearAndFar(
            near,
            nodes.Affine(*_factors(module.fcn_norm)),
            Chain([_folded(module.input_shortcut), nodes.Delay(near.ahead)]),
            Chain(plan(module.ls2t, length)),
            Chain([nodes.Mean(), _folded(module.fcn_shortcut)]),
        )
    ]


def _clock(length: int | None, mode: str) -> Node:
    if length is None:
        raise check.ArgumentError(NEEDS_LENGTH)
    return nodes.Clock(length, mode)


def _coefficients(layer: LS2T) -> Tensor | None:
    """Weight of a step that meets j vectors."""
    if layer.lift is not None:
        return torch.cat([layer.lift.new_ones(1), layer.lift]).detach().double()
    if layer.lift_order == 1:
        return None
    inverse = [1.0 / math.factorial(j) for j in range(1, layer.lift_order + 1)]
    return layer.weight.new_tensor(inverse, dtype=torch.float64)


def _decay(layer: LS2T) -> Tensor | None:
    if layer.decay_logit is not None:
        return _double(layer.decay_logit).sigmoid()
    return None if layer.decay is None else _double(layer.decay)


def _factors(norm: MaskedBatchNorm) -> tuple[Tensor, Tensor]:
    """Scale and shift of a batch normalisation in eval mode."""
    scale = (_double(norm.running_var) + norm.eps).rsqrt()
    if norm.weight is not None:
        scale = scale * _double(norm.weight)
    shift = -_double(norm.running_mean) * scale
    return scale, shift if norm.bias is None else shift + _double(norm.bias)


def _folded(block: ConvBlock) -> nodes.Convolution:
    """Convolution and normalisation as one convolution."""
    scale, shift = _factors(block.norm)
    weight = _double(block.conv.weight) * scale[:, None, None]
    return nodes.Convolution(weight, _double(block.conv.bias) * scale + shift, relu=block.activation)


def _double(tensor: Tensor) -> Tensor:
    """A copy: training that goes on must not change a stream."""
    return tensor.detach().to(torch.float64, copy=True)
