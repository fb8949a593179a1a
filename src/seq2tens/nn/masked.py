"""Layers of convolutional networks for sequences of unequal length, axes `(batch, time, channels)`."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens import functional as F
from seq2tens.nn.alignment import Mask, Series
from seq2tens.nn.context import Whole

mean_pool = F.masked_mean


def check_rate(name: str, rate: float) -> None:
    """Require a probability below 1."""
    check.require(0 <= rate < 1, f"`{name}` must lie in [0, 1), got {rate}")


def _check_momentum(momentum: float | None) -> None:
    """Require a number in [0, 1]; torch's None, the mean over all batches so far, is not supported."""
    if momentum is None or not 0 <= momentum <= 1:
        raise check.ArgumentError(f"`momentum` must be a number in [0, 1], got {momentum}")


class MaskedConv(nn.Module):
    """Convolution over time that keeps the length, with zeros beyond the ends and at masked steps.

    Masked steps must be finite. An even kernel reaches one step further ahead than back, as in Keras. Also as
    in Keras, the initial weights are Glorot uniform, and the bias is zero.
    """

    def __init__(self, in_features: int, out_features: int, kernel: int) -> None:
        super().__init__()
        for name, value in [("in_features", in_features), ("out_features", out_features), ("kernel", kernel)]:
            check.positive_int(name, value)
        self.in_features = in_features
        self.weight = nn.Parameter(torch.empty(out_features, in_features, kernel))
        self.bias = nn.Parameter(torch.empty(out_features))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw new weights."""
        nn.init.xavier_uniform_(self.weight)
        self.bias.zero_()

    def extra_repr(self) -> str:
        """Return the sizes."""
        out_features, in_features, kernel = self.weight.shape
        return f"{in_features}, {out_features}, kernel={kernel}"

    def forward(
        self,
        x: Series,
        mask: Mask | None = None,
        *,
        train_bias: bool = True,
        context: Whole | None = None,
    ) -> Float[Tensor, "batch time out"]:
        """Convolve.

        If `train_bias` is False, the gradient of the bias is 0. Before a batch normalisation in training it
        would only be a rounding error, which Adam would scale up to steps of full size.
        """
        check.floating("x", x)
        context = Whole(mask) if context is None else context
        return context.convolve(self, x, *F.reach(self.weight.shape[2]), train_bias)


class MaskedBatchNorm(nn.Module):
    """Batch normalisation per channel, over the valid steps of sequences or over vectors.

    Sequences are `(batch, time, channels)`, vectors `(batch, channels)`. Masked steps must be finite, and
    become 0. The running variance follows the variance of the batch without Bessel's correction, as in Keras.
    In training a NaN spreads to the whole batch, as in any such layer.
    """

    running_mean: Tensor
    running_var: Tensor
    peers: Any = None  # other processes that share the statistics, see `distributed.synchronized`
    levels = False  # whether channels are levels, each with several functionals
    takes_vectors = True  # accepts vectors as well as sequences

    def __init__(
        self, features: int, *, affine: bool = True, eps: float = 1e-3, momentum: float = 0.01
    ) -> None:
        super().__init__()
        check.positive_int("features", features)
        _check_momentum(momentum)
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(features)) if affine else None
        self.bias = nn.Parameter(torch.zeros(features)) if affine else None
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def extra_repr(self) -> str:
        """Return the size and the options."""
        return f"{len(self.running_mean)}, affine={self.weight is not None}, eps={self.eps}"

    def forward(
        self, x: Tensor, mask: Bool[Tensor, "*steps"] | None = None, *, context: Whole | None = None
    ) -> Tensor:
        """Normalise; masked steps become 0."""
        check.floating("x", x)
        return self.over(x, mask) if context is None else context.normalize(self, x)

    def over(self, x: Tensor, mask: Bool[Tensor, "*steps"] | None) -> Tensor:
        """Normalise over the steps where `mask` is True; it has the axes of `x` before the channels."""
        if self.training:
            _check_momentum(self.momentum)
        dtype = torch.promote_types(x.dtype, torch.float32)  # LS2T returns at least float32
        weight, bias = (None if t is None else t.to(dtype) for t in (self.weight, self.bias))
        running = F.Running(self.running_mean, self.running_var, self.momentum)
        normalize = F.batch_norm if self.peers is None or not self.training else self.peers.batch_norm
        wide = x if x.dtype == dtype else x.to(dtype)
        y = normalize(
            wide, running, weight, bias, mask, training=self.training, eps=self.eps, levels=self.levels
        )
        return y if wide is x else y.to(x.dtype)

    def scale_and_shift(self) -> tuple[Tensor, Tensor]:
        """Return scale and shift of the layer in evaluation mode, ready to be broadcast."""
        scale = (self.running_var + self.eps).rsqrt()
        scale = scale if self.weight is None else scale * self.weight
        shift = -self.running_mean * scale
        shift = shift if self.bias is None else shift + self.bias
        return (scale[:, None], shift[:, None]) if self.levels else (scale, shift)
