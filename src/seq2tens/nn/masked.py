"""Parts of convolutional networks for sequences of unequal length, axes `(batch, time, channels)`.

A network calls `align` first. From there on steps that do not count come last and hold zeros, as if the
sequence were over; convolutions disturb that, and the normalisation after them restores it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as torch_F

from seq2tens import _checks as check
from seq2tens import functional as F
from seq2tens.ops.batch_norm import Normalized, Running, Settings, normalize, normalize_product

if TYPE_CHECKING:
    from seq2tens.nn.synchronised import Peers

LONGEST_TABLE = 256  # steps for which clocks are kept, at most some hundred kilobytes

Path = Float[Tensor, "batch time channels"]
Mask = Bool[Tensor, "batch time"]
Source = Int[Tensor, "batch time"]


def align(
    x: Path, mask: Mask | None, lengths: check.Lengths | None
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


def centred_clock(x: Path, mask: Mask | None) -> Float[Tensor, "batch time 1"]:
    """Time from -1 to 1 over each of the aligned sequences, as a channel; 0 where nothing counts."""
    time = x.shape[1]
    looked_up = torch.is_grad_enabled() and not torch.compiler.is_compiling()
    if mask is None or time > LONGEST_TABLE or not looked_up:
        return F.time_embedding(x[..., :0], mode="centred", mask=mask)
    return _clocks(time, x.dtype, x.device).index_select(0, mask.sum(1))[..., None]


@lru_cache(maxsize=16)
def _clocks(time: int, dtype: torch.dtype, device: torch.device) -> Float[Tensor, "lengths time"]:
    """The clock of sequences of 0, 1, … steps: in training one look-up in place of a dozen operations."""
    every = torch.arange(time, device=device).expand(time + 1, time)
    mask = every < torch.arange(time + 1, device=device)[:, None]
    empty = torch.empty((time + 1, time, 0), dtype=dtype, device=device)
    return F.time_embedding(empty, mode="centred", mask=mask)[..., 0]


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


def _check_momentum(momentum: float | None) -> None:
    """Require a share; torch's None, the mean over all batches so far, would need to count them."""
    share = momentum is not None and 0 <= momentum <= 1
    check.require(share, f"`momentum` must be a number in [0, 1], got {momentum}")


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
        self,
        x: Path,
        mask: Mask | None = None,
        clock: Float[Tensor, "batch time 1"] | None = None,
        *,
        biased: bool = True,
    ) -> Float[Tensor, "batch time out"]:
        """Convolve; a `clock` stands before the channels of `x` as one more."""
        check.floating("x", x)
        if mask is not None:
            x = x * mask[..., None]
        x, bias = _with_clock(x, clock), self.bias if biased else None
        if lacks_products(x):
            ends = _ends(self.weight.shape[2])
            return torch_F.conv1d(torch_F.pad(x.mT, ends), self.weight, bias).mT
        return torch_F.linear(*_as_product(x, self.weight), bias)

    def as_product(
        self, x: Path, clock: Float[Tensor, "batch time 1"] | None = None
    ) -> tuple[Float[Tensor, "batch time neighbours"], Float[Tensor, "out neighbours"]] | None:
        """What is multiplied with what, but for the bias; None where convolving is better."""
        x = _with_clock(x, clock)
        return None if lacks_products(x) else _as_product(x, self.weight)


class MaskedBatchNorm(nn.Module):
    """Batch normalisation per channel over the steps that count, `(batch, time, channels)`, or over the
    batch, `(batch, channels)`.

    Steps that do not count must be finite, and become 0. The running variance follows the batch's variance
    without Bessel's correction, as in Keras. In training a NaN reaches the whole batch, as in any such layer.
    """

    running_mean: Tensor
    running_var: Tensor
    peers: Peers | None = None  # processes whose rows count too, see `synchronised`

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
        """Size and options."""
        return f"{len(self.running_mean)}, affine={self.weight is not None}, eps={self.eps}"

    def forward(self, x: Tensor, mask: Mask | None = None) -> Tensor:
        """Normalise; steps that do not count become 0."""
        check.floating("x", x)
        return self.lacking(x, mask, None)

    def lacking(
        self, x: Tensor, mask: Mask | None, missing: Float[Tensor, " channels"] | None
    ) -> Float[Tensor, "*steps channels"]:
        """Normalise in training what still lacks a constant, such as the bias of a layer before.

        The mean would take the constant away again. Left out, its gradient is 0 rather than a rounding error,
        out of which Adam makes steps of full size.
        """
        return self._normalize(x, mask, missing=missing)

    def of_product(
        self,
        rows: Float[Tensor, "*steps features"],
        matrix: Float[Tensor, "channels features"],
        mask: Mask | None,
        missing: Float[Tensor, " channels"],
        *,
        rectified: bool,
    ) -> Float[Tensor, "*steps channels"]:
        """`lacking` of `rows` times the transpose of `matrix`, in training; `rectified` as by a ReLU."""
        dtypes = {rows.dtype, matrix.dtype, *(tensor.dtype for tensor in self._tensors())}
        if self.peers is not None or len(dtypes) > 1:
            y = self.lacking(torch_F.linear(rows, matrix), mask, missing)
            return y.relu() if rectified else y
        settings = Settings(self.eps, rectified=rectified)
        y, mean, var = normalize_product(rows, matrix, missing, mask, self.weight, self.bias, settings)
        self.follow(mean, var)
        return y

    def _normalize(
        self, x: Tensor, mask: Tensor | None, inner: int | None = None, missing: Tensor | None = None
    ) -> Tensor:
        """Normalise the last axis, or with `inner` values each the last but one."""
        dtype = torch.promote_types(x.dtype, torch.float32)  # LS2T widens what a half-precision model holds
        weight, bias = (None if t is None else t.to(dtype) for t in (self.weight, self._shift(missing)))
        if self.training:
            y, mean, var = self._with_statistics(x.to(dtype), mask, weight, bias, Settings(self.eps, inner))
            self.follow(mean if missing is None else mean + missing.detach(), var)
            return y.to(x.dtype)
        mean, var = self.running_mean.to(dtype), self.running_var.to(dtype)
        rows = x.reshape(-1, len(mean), inner or 1)
        y = torch_F.batch_norm(rows, mean, var, weight, bias, eps=self.eps)
        return (y if mask is None else y * mask.reshape(-1, 1, 1)).reshape(x.shape)

    def _shift(self, missing: Tensor | None) -> Tensor | None:
        """The bias; with a constant that is missing in `x` a sum that gives this one a gradient too, of 0."""
        return self.bias if missing is None or self.bias is None else torch.add(self.bias, missing, alpha=0)

    def _with_statistics(
        self, x: Tensor, mask: Tensor | None, weight: Tensor | None, bias: Tensor | None, settings: Settings
    ) -> Normalized:
        if self.peers is None:
            return normalize(x, mask, weight, bias, settings)
        rows = x.reshape(-1, len(self.running_mean), settings.inner or 1)
        counted = None if mask is None else mask.reshape(-1)
        found = self.peers.normalize_rows(rows, counted, weight, bias, settings.eps)
        return found._replace(values=found.values.reshape(x.shape))

    def _tensors(self) -> list[Tensor]:
        """Parameters, where there are any, and running statistics."""
        found = (self.weight, self.bias, self.running_mean, self.running_var)
        return [tensor for tensor in found if tensor is not None]

    def fits(self, channels: int, dtype: torch.dtype, *, affine: bool) -> bool:
        """Whether the tensors are of this number and kind, which an operation that reads them relies on."""
        tensors = self._tensors()
        fitting = [t for t in tensors if t.dtype is dtype and t.shape == (channels,)]
        return len(fitting) == len(tensors) == (4 if affine else 2)

    def settings(self, inner: int | None = None, scale: float = 1.0) -> Settings:
        """The options, for an operation that lets the running statistics follow by itself."""
        _check_momentum(self.momentum)
        return Settings(self.eps, inner, scale=scale, momentum=self.momentum)

    @property
    def running(self) -> Running:
        """The running statistics."""
        return Running(self.running_mean, self.running_var)

    @torch.no_grad()
    def follow(self, mean: Tensor, var: Tensor) -> None:
        """Let the running statistics follow those of a batch."""
        _check_momentum(self.momentum)
        self.running.follow(mean, var, self.momentum)


def _with_clock(x: Path, clock: Tensor | None) -> Tensor:
    return x if clock is None else torch.cat([clock.to(x.dtype), x], dim=2)


def lacks_products(x: Tensor) -> bool:
    """Whether matrix products are not to be had for this dtype on every processor."""
    autocast = not x.is_meta and torch.is_autocast_enabled(x.device.type)  # which the meta device has not
    return x.dtype.itemsize < 4 or autocast


def _as_product(x: Path, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The neighbours of each step, with zeros beyond the ends, and the weights in their order.

    In this layout their product is faster than `conv1d` on short sequences and as fast on long ones.
    """
    kernel, time = weight.shape[2], x.shape[1]
    if kernel == 1:
        return x, weight.squeeze(2)
    padded = torch_F.pad(x, (0, 0, *_ends(kernel)))
    return torch.cat([padded[:, i : i + time] for i in range(kernel)], dim=2), weight.mT.flatten(1)


def _ends(kernel: int) -> tuple[int, int]:
    return (kernel - 1) // 2, kernel // 2
