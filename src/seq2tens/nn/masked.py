"""Parts of convolutional networks for sequences of unequal length, axes `(batch, time, channels)`.

A network calls `align` first. From there on steps that do not count come last and hold zeros, as if the
sequence were over; convolutions disturb that, and the normalisation after them restores it.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as torch_F

from seq2tens import _checks as check
from seq2tens.ops.normalize import normalize_rows

Path = Float[Tensor, "batch time channels"]
Mask = Bool[Tensor, "batch time"]
Source = Int[Tensor, "batch time"]


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
    return (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


def spatial_dropout(x: Tensor, rate: float, training: bool) -> Tensor:
    """Drop whole channels of a sequence, `(batch, time, channels)`, or single ones of `(batch, channels)`."""
    if rate == 0 or not training:
        return x
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
        if mask is not None:
            x = x * mask[..., None]
        if clock is not None:
            x = torch.cat([clock.to(x.dtype), x], dim=2)
        return _same_convolution(x, self.weight, self.bias)


class MaskedBatchNorm(nn.Module):
    """Batch normalisation per channel over the steps that count, `(batch, time, channels)`, or over the
    batch, `(batch, channels)`.

    Steps that do not count must be finite, and become 0. The running variance follows the batch's variance
    without Bessel's correction, as in Keras. In training a NaN reaches the whole batch, as in any such layer.
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
        """Normalise; steps that do not count become 0."""
        rows = x.reshape(-1, x.shape[-1], 1)
        return self._normalize(rows, None if mask is None else mask.reshape(-1)).reshape(x.shape)

    def _normalize(
        self, rows: Float[Tensor, "rows channels inner"], mask: Bool[Tensor, " rows"] | None
    ) -> Float[Tensor, "rows channels inner"]:
        dtype = torch.promote_types(
            rows.dtype, torch.float32
        )  # LS2T widens what a half-precision model holds
        weight, bias = (None if t is None else t.to(dtype) for t in (self.weight, self.bias))
        if not self.training:
            mean, var = self.running_mean.to(dtype), self.running_var.to(dtype)
            y = torch_F.batch_norm(rows, mean, var, weight, bias, eps=self.eps)
            return y if mask is None else y * mask[:, None, None]
        y, mean, var = normalize_rows(rows.to(dtype), mask, weight, bias, self.eps)
        self._follow(mean, var)
        return y.to(rows.dtype)

    @torch.no_grad()
    def _follow(self, mean: Tensor, var: Tensor) -> None:
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.momentum)
        self.running_var.lerp_(var.to(self.running_var.dtype), self.momentum)


def _same_convolution(x: Path, weight: Tensor, bias: Tensor) -> Path:
    """Convolution that keeps the length, as one matrix product with the neighbours of each step.

    In this layout that is faster than `conv1d` on short sequences and as fast on long ones, but for half
    precision, for which matrix products are not to be had on every processor.
    """
    (_, _, kernel), time = weight.shape, x.shape[1]
    ends = ((kernel - 1) // 2, kernel // 2)
    if x.dtype.itemsize < 4 or torch.is_autocast_enabled(x.device.type):
        return torch_F.conv1d(torch_F.pad(x.mT, ends), weight, bias).mT
    if kernel > 1:
        padded = torch_F.pad(x, (0, 0, *ends))
        x = torch.cat([padded[:, i : i + time] for i in range(kernel)], dim=2)
    return torch_F.linear(x, weight.mT.flatten(1), bias)
