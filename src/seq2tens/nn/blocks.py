"""LS2T blocks (path transforms, LS2T, normalisation) and stacks of them."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens.nn.alignment import Series
from seq2tens.nn.context import Network, Whole
from seq2tens.nn.layers import LS2T
from seq2tens.nn.masked import MaskedBatchNorm, check_rate


class LevelNorm(MaskedBatchNorm):
    """Batch normalisation with one mean and variance per level, over batch, time and functionals.

    Masked steps do not enter the statistics. There are no trainable parameters. In training a NaN spreads to
    the whole batch, as in any batch normalisation.
    """

    levels = True

    def __init__(self, order: int, eps: float = 1e-3, momentum: float = 0.01) -> None:
        check.positive_int("order", order)
        super().__init__(order, affine=False, eps=eps, momentum=momentum)


class LS2TBlock(Network):
    """Time, difference, LS2T, normalisation, flatten.

    Maps `(batch, time, d)` to `(batch, time, order · width)`, or to `(batch, order · width)` without
    `return_sequences`.

    Args:
        in_features: channels of the input.
        width: number of functionals.
        order: highest level.
        time: how the layer sees time. After differencing a time coordinate is a constant, so the default,
            `"bias"`, gives the components a bias. `"index"` and `"centred"` add a time channel instead;
            `None` leaves time out.
        difference: take the increments of the input first.
        norm: normalise each level over the batch.
        spatial_dropout: rate at which whole channels of the output are dropped in training.
        options: further options of `LS2T`.
    """

    def __init__(
        self,
        in_features: int,
        width: int,
        order: int,
        *,
        time: Literal["bias", "index", "centred"] | None = "bias",
        difference: bool = True,
        norm: bool = True,
        spatial_dropout: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__()
        check.choice("time", time, ("bias", "index", "centred", None))
        check_rate("spatial_dropout", spatial_dropout)
        self.time, self.difference, self.spatial_dropout = time, difference, spatial_dropout
        features = in_features + (time in ("index", "centred"))
        self.ls2t = LS2T(features, width, order, bias=time == "bias", **options)
        levels = 1 if self.ls2t.sum_levels else order
        self.norm = LevelNorm(levels) if norm else None
        self.in_features, self.out_features = in_features, levels * width

    def compute(self, x: Series, context: Whole) -> Tensor:
        """Apply the block."""
        if self.time == "index" or self.time == "centred":
            x = torch.cat([context.clock(x, self.time), x], dim=2)
        if self.difference:
            x = context.difference(x)
        layer, norm = self.ls2t, self.norm
        y = layer(x, context=context)
        if layer.sum_levels:
            y = y.unsqueeze(-2)
        if norm is not None:
            y = norm(y, context=context)
        return context.dropout(y.flatten(-2), self.spatial_dropout, self.training)


class DeepLS2T(Network):
    """`depth` stacked LS2T blocks; the last one returns the value for the whole sequence.

    Output `(batch, order · width)`, or `(batch, time, order · width)` with `return_sequences`.

    Args:
        in_features: channels of the input.
        width: number of functionals in each LS2T layer.
        depth: number of LS2T layers.
        order: highest level.
        return_sequences: return the value after every step.
        options: those of `LS2TBlock`, for every block.
    """

    def __init__(
        self,
        in_features: int,
        width: int = 64,
        depth: int = 3,
        order: int = 2,
        *,
        return_sequences: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        check.positive_int("depth", depth)
        blocks: list[LS2TBlock] = []
        for index in range(depth):
            features = blocks[-1].out_features if blocks else in_features
            whole = return_sequences or index < depth - 1
            blocks.append(LS2TBlock(features, width, order, return_sequences=whole, **options))
        self.blocks = nn.ModuleList(blocks)
        self.return_sequences = return_sequences
        self.in_features, self.out_features = in_features, blocks[-1].out_features

    def compute(self, x: Series, context: Whole) -> Tensor:
        """Apply one block after the other."""
        for block in self.blocks:
            x = block(x, context=context)
        return x
