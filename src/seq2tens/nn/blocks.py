"""Blocks of layers: transforms, LS2T, normalisation, one after the other."""

from __future__ import annotations

from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens import functional as F
from seq2tens.nn.layers import LS2T


class LevelNorm(nn.Module):
    """Batch normalisation with one mean and variance per level, over batch, time and functionals.

    Steps that do not count take no part in the statistics. There are no trainable parameters. In training a
    NaN reaches the whole batch, as in any batch normalisation.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, order: int, eps: float = 1e-3, momentum: float = 0.01) -> None:
        super().__init__()
        check.positive_int("order", order)
        self.eps, self.momentum = eps, momentum
        self.register_buffer("running_mean", torch.zeros(order))
        self.register_buffer("running_var", torch.ones(order))

    def forward(
        self, y: Float[Tensor, "*steps order width"], mask: Bool[Tensor, "*steps"] | None = None
    ) -> Float[Tensor, "*steps order width"]:
        """Normalise; `mask` has the axes of `y` before the level axis."""
        mean, var = self._statistics(y, mask) if self.training else (self.running_mean, self.running_var)
        scale = (var.to(y.dtype) + self.eps).rsqrt()
        return (y - mean.to(y.dtype)[:, None]) * scale[:, None]

    def _statistics(self, y: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        axes = [*range(y.dim() - 2), y.dim() - 1]
        if mask is None:
            mean = y.mean(axes)
            var = (y - mean[:, None]).square().mean(axes)
        else:
            counts = mask[..., None, None]
            total = (mask.sum() * y.shape[-1]).clamp(min=1)
            mean = torch.where(counts, y, 0.0).sum(axes) / total
            var = torch.where(counts, (y - mean[:, None]).square(), 0.0).sum(axes) / total
        with torch.no_grad():
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.momentum)
            self.running_var.lerp_(var.to(self.running_var.dtype), self.momentum)
        return mean, var


class LS2TBlock(nn.Module):
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
        **options: Any,
    ) -> None:
        super().__init__()
        check.choice("time", time, ("bias", "index", "centred", None))
        self.time, self.difference = time, difference
        features = in_features + (time in ("index", "centred"))
        self.ls2t = LS2T(features, width, order, bias=time == "bias", **options)
        self.norm = LevelNorm(order) if norm else None
        self.out_features = order * width

    def forward(
        self,
        x: Float[Tensor, "batch time in_features"],
        mask: Bool[Tensor, "batch time"] | None = None,
        lengths: Int[Tensor, " batch"] | None = None,
    ) -> Tensor:
        """Steps that do not count change nothing, in the output as in the statistics."""
        check.sequences("x", x)
        mask = check.step_mask(x, mask, lengths)
        if self.time in ("index", "centred"):
            x = F.time_embedding(x, mode=self.time, mask=mask)
        if self.difference:
            x = F.difference(x, mask=mask)
        y = self.ls2t(x, mask)
        if self.norm is not None:
            y = self.norm(y, mask if self.ls2t.return_sequences else None)
        return y.flatten(-2)


class DeepLS2T(nn.Module):
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
        self.out_features = order * width

    def forward(
        self,
        x: Float[Tensor, "batch time in_features"],
        mask: Bool[Tensor, "batch time"] | None = None,
        lengths: Int[Tensor, " batch"] | None = None,
    ) -> Tensor:
        """Steps that do not count change nothing."""
        check.sequences("x", x)
        mask = check.step_mask(x, mask, lengths)
        for block in self.blocks:
            x = block(x, mask)
        return x
