"""Blocks of layers: transforms, LS2T, normalisation, one after the other."""

from __future__ import annotations

from typing import Any, Literal

from jaxtyping import Bool, Float
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens import functional as F
from seq2tens.nn.layers import LS2T
from seq2tens.nn.masked import MaskedBatchNorm, align, check_rate, spatial_dropout
from seq2tens.nn.streamable import Streamable


class LevelNorm(MaskedBatchNorm):
    """Batch normalisation with one mean and variance per level, over batch, time and functionals.

    Steps that do not count take no part in the statistics. There are no trainable parameters. In training a
    NaN reaches the whole batch, as in any batch normalisation.
    """

    levels = True

    def __init__(self, order: int, eps: float = 1e-3, momentum: float = 0.01) -> None:
        check.positive_int("order", order)
        super().__init__(order, affine=False, eps=eps, momentum=momentum)

    def forward(
        self, y: Float[Tensor, "*steps order width"], mask: Bool[Tensor, "*steps"] | None = None
    ) -> Float[Tensor, "*steps order width"]:
        """Normalise; `mask` has the axes of `y` before the level axis."""
        return super().forward(y, mask)


class LS2TBlock(Streamable, nn.Module):
    """Time, difference, LS2T, normalisation, flatten: `(batch, time, d)` to `(batch, time, order · width)`,
    or to `(batch, order · width)` without `return_sequences`.

    Args:
        in_features: channels of the input.
        width: number of functionals.
        order: highest level.
        time: after differencing a time coordinate is a constant, so the default gives the components a
            bias for it; `"index"` and `"centred"` embed time in its place, `None` leaves it out.
        difference: take increments first.
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
        self.norm = LevelNorm(order) if norm else None
        self.out_features = order * width

    def forward(
        self,
        x: Float[Tensor, "batch time in_features"],
        mask: Bool[Tensor, "batch time"] | None = None,
        lengths: check.Lengths | None = None,
        *,
        aligned: bool = False,
    ) -> Tensor:
        """Steps that do not count change nothing, in the output as in the statistics.

        Where they all come last, as with lengths alone, increments are found faster; `aligned` says that a
        mask is such.
        """
        check.sequences("x", x)
        aligned = aligned or mask is None
        mask = check.step_mask(x, mask, lengths)
        if self.time in ("index", "centred"):
            x = F.time_embedding(x, mode=self.time, mask=mask)
        if self.difference:
            x = F.difference(x, mask=None if aligned else mask)
        y = self.ls2t(x, mask)
        if self.norm is not None:
            y = self.norm(y, mask if self.ls2t.return_sequences else None)
        return spatial_dropout(y.flatten(-2), self.spatial_dropout, self.training)


class DeepLS2T(Streamable, nn.Module):
    """`depth` LS2T blocks on top of each other; the last one returns the end point.

    Output `(batch, order · width)`, or `(batch, time, order · width)` with `return_sequences`. `options`
    are those of `LS2TBlock`.
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
        blocks = []
        for index in range(depth):
            features = order * width if index else in_features
            whole = return_sequences or index < depth - 1
            blocks.append(LS2TBlock(features, width, order, return_sequences=whole, **options))
        self.blocks = nn.ModuleList(blocks)
        self.return_sequences = return_sequences
        self.out_features = order * width

    def forward(
        self,
        x: Float[Tensor, "batch time in_features"],
        mask: Bool[Tensor, "batch time"] | None = None,
        lengths: check.Lengths | None = None,
        *,
        aligned: bool = False,
    ) -> Tensor:
        """Steps that do not count change nothing; `aligned` as in `LS2TBlock`."""
        check.sequences("x", x)
        check.not_empty("x", x)
        aligned = aligned or mask is None
        if not aligned and not self.return_sequences:  # aligning once is cheaper than gaps in every block
            x, mask, _ = align(x, mask, lengths)
            aligned = True
        else:
            mask = check.step_mask(x, mask, lengths)
        for block in self.blocks:
            x = block(x, mask, aligned=aligned)
        return x
