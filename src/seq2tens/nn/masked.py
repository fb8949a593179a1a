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


mean_pool = F.masked_mean


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
        train_bias: bool = True,
    ) -> Float[Tensor, "batch time out"]:
        """Convolve; a `clock` stands before the channels of `x` as one more.

        Without `train_bias` the gradient of the bias is 0. Before a batch normalisation in training it would
        be a rounding error, out of which Adam makes steps of full size.
        """
        check.floating("x", x)
        if mask is not None:
            x = x * mask[..., None]
        if clock is not None:
            x = torch.cat([clock.to(x.dtype), x], dim=2)
        bias: Tensor = self.bias
        if not train_bias and bias is not None:
            bias = torch.add(bias.detach(), bias, alpha=0)  # every parameter has a gradient
        return F.convolve(torch_F.pad(x, (0, 0, *F.reach(self.weight.shape[2]))), self.weight, bias)


class MaskedBatchNorm(nn.Module):
    """Batch normalisation per channel over the steps that count, `(batch, time, channels)`, or over the
    batch, `(batch, channels)`.

    Steps that do not count must be finite, and become 0. The running variance follows the batch's variance
    without Bessel's correction, as in Keras. In training a NaN reaches the whole batch, as in any such layer.
    """

    running_mean: Tensor
    running_var: Tensor
    peers: Peers | None = None  # processes whose rows count too, see `synchronised`
    levels = False  # whether channels are levels, each with several functionals

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
        if self.training:
            _check_momentum(self.momentum)
        dtype = torch.promote_types(x.dtype, torch.float32)  # LS2T widens what a half-precision model holds
        weight, bias = (None if t is None else t.to(dtype) for t in (self.weight, self.bias))
        running = F.Running(self.running_mean, self.running_var, self.momentum)
        normalize = F.batch_norm if self.peers is None or not self.training else self.peers.batch_norm
        y = normalize(
            x.to(dtype), running, weight, bias, mask, training=self.training, eps=self.eps, levels=self.levels
        )
        return y.to(x.dtype)
