"""Parts of convolutional networks for sequences of unequal length, axes `(batch, time, channels)`.

A network calls `align` first. From there on a step that does not count holds some finite number on which no
result depends, so that one product with the mask leaves it out; a choice between values costs several times
as much. Inside, tensors are transposed views: convolution and batch normalisation want the channels second.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as torch_F

from seq2tens import _checks as check

Path = Float[Tensor, "batch time channels"]
Mask = Bool[Tensor, "batch time"]
Source = Int[Tensor, "batch time"]


def zero_steps(x: Path, mask: Mask | None) -> Path:
    """Set the steps that do not count, and are finite, to 0."""
    return x if mask is None else x * mask[..., None]


def align(
    x: Path, mask: Mask | None, lengths: Int[Tensor, " batch"] | None
) -> tuple[Path, Mask | None, Source | None]:
    """Move the steps that count to the front of their sequences, in their order; zeros follow.

    Returns the sequences, their mask and, for `restore`, the step that each step was. Once aligned, a step
    that does not count is as good as absent: neighbours in the tensor are neighbours in the sequence.
    """
    check.sequences("x", x)
    check.not_empty("x", x)
    joined = check.step_mask(x, mask, lengths)
    if joined is None:
        return x, None, None
    source = None
    if mask is not None:  # lengths alone have all that counts in front already
        source = joined.byte().argsort(dim=1, descending=True, stable=True)
        joined = joined.gather(1, source)
        x = x.gather(1, source[..., None].expand_as(x))
    return torch.where(joined[..., None], x, 0.0), joined, source


def restore(y: Path, source: Source | None) -> Path:
    """Move the steps back to where `align` found them."""
    return y if source is None else y.scatter(1, source[..., None].expand_as(y), y)


def mean_pool(x: Path, mask: Mask | None = None) -> Float[Tensor, "batch channels"]:
    """Mean over the steps that count, the others being finite; an empty sequence gives zeros."""
    if mask is None:
        return x.mean(1)
    return zero_steps(x, mask).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


def spatial_dropout(x: Tensor, rate: float, training: bool) -> Tensor:
    """Drop whole channels of a sequence, `(batch, time, channels)`, or single ones of `(batch, channels)`."""
    if x.dim() == 2:
        return torch_F.dropout(x, rate, training)
    return torch_F.dropout1d(x.mT, rate, training).mT


def check_rate(name: str, rate: float) -> None:
    """Require a probability below 1."""
    check.require(0 <= rate < 1, f"`{name}` must lie in [0, 1), got {rate}")


class MaskedConv(nn.Module):
    """Convolution over time, with zeros beyond the ends and at steps that do not count; the length stays.

    Steps that do not count must be finite. An even kernel reaches one step further ahead than back, as in
    Keras. Weights start as they do there, uniform after Glorot, and the bias at zero.
    """

    def __init__(self, in_features: int, out_features: int, kernel: int) -> None:
        super().__init__()
        for name, value in [("in_features", in_features), ("out_features", out_features), ("kernel", kernel)]:
            check.positive_int(name, value)
        self.weight = nn.Parameter(torch.empty(out_features, in_features, kernel))
        self.bias = nn.Parameter(torch.empty(out_features))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw new weights."""
        nn.init.xavier_uniform_(self.weight)
        self.bias.zero_()

    def extra_repr(self) -> str:
        """The three sizes."""
        out_features, in_features, kernel = self.weight.shape
        return f"{in_features}, {out_features}, kernel={kernel}"

    def forward(
        self, x: Path, mask: Mask | None = None, clock: Float[Tensor, "batch time 1"] | None = None
    ) -> Float[Tensor, "batch time out"]:
        """Convolve; a `clock` stands before the channels of `x` as one more."""
        x = zero_steps(x, mask).mT
        if clock is not None:
            x = torch.cat([clock.mT.to(x.dtype), x], dim=1)
        return _same_convolution(x, self.weight, self.bias).mT


class MaskedBatchNorm(nn.Module):
    """Batch normalisation per channel over the steps that count, `(batch, time, channels)`, or over the
    batch, `(batch, channels)`.

    Steps that do not count must be finite. The running variance follows the batch's variance without
    Bessel's correction, as in Keras. In training a NaN reaches the whole batch, as in any such layer.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(
        self, features: int, *, affine: bool = True, eps: float = 1e-3, momentum: float = 0.01
    ) -> None:
        super().__init__()
        check.positive_int("features", features)
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(features)) if affine else None
        self.bias = nn.Parameter(torch.zeros(features)) if affine else None
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def extra_repr(self) -> str:
        """Size and options."""
        return f"{len(self.running_mean)}, affine={self.weight is not None}, eps={self.eps}"

    def forward(self, x: Tensor, mask: Mask | None = None) -> Tensor:
        """Normalise."""
        if x.dim() == 2:
            return self._normalize(x, mask)
        return self._normalize(x.mT, None if mask is None else mask[:, None]).mT

    def _normalize(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """The same with the channels as the second axis; `mask` broadcasts to `x`."""
        dtype = torch.promote_types(x.dtype, torch.float32)  # LS2T widens what a half-precision model holds
        weight, bias = (None if t is None else t.to(dtype) for t in (self.weight, self.bias))
        if not self.training:
            mean, var = self.running_mean.to(dtype), self.running_var.to(dtype)
            return torch_F.batch_norm(x, mean, var, weight, bias, eps=self.eps)
        if mask is None:
            y, mean, scale = _batch_norm(x, weight, bias, self.eps)
        else:
            y, mean, scale = _masked_batch_norm(x, mask, weight, bias, self.eps)
        with torch.no_grad():
            var = (scale.pow(-2) - self.eps).clamp(min=0)
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.momentum)
            self.running_var.lerp_(var.to(self.running_var.dtype), self.momentum)
        return y


def _same_convolution(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Convolution of `(batch, channels, time)` that keeps the length."""
    out_features, in_features, kernel = weight.shape
    if kernel == 1:  # a matrix product, several times faster as such on short sequences
        return torch.baddbmm(bias[:, None], weight[..., 0].expand(len(x), out_features, in_features), x)
    if kernel % 2:
        return torch_F.conv1d(x, weight, bias, padding=kernel // 2)
    x = torch_F.pad(x, ((kernel - 1) // 2, kernel // 2))  # conv1d itself pads both sides alike
    return torch_F.conv1d(x, weight, bias)


def _batch_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Result, mean and (variance + eps)^(-1/2). `F.batch_norm` would keep Bessel's variance only."""
    return torch.native_batch_norm(x, weight, bias, None, None, True, 0.0, eps)


def _masked_batch_norm(
    x: Tensor, mask: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The same over the steps that count, by the same fused kernel.

    Centred values with zeros for the other steps have mean 0, and a variance that is too small by the share
    of steps that count; `stretch` makes up for it, and `weight` takes it out again.
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    inner = x[0, 0].numel() // mask[0].numel()  # values per channel that share one entry of the mask
    total = (mask.sum() * inner).clamp(min=1).to(wide.dtype)
    mean = (wide * mask).sum([0, *range(2, x.dim())]) / total
    stretch = (mask.numel() * inner / total).sqrt()
    centred = (wide - mean.view(-1, *[1] * (x.dim() - 2))) * (mask * stretch)
    shrunk = (1 / stretch).expand_as(mean) if weight is None else weight / stretch
    y, _, scale = _batch_norm(centred, shrunk, bias, eps)
    return y.to(x.dtype), mean, scale
