"""Batch normalisation and mean over the valid steps."""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as torch_F

from seq2tens.ops.batch_norm import PerChannel, Running, Settings
from seq2tens.ops.batch_norm import batch_norm as _batch_norm


def masked_mean(
    x: Float[Tensor, "batch time *channels"],
    mask: Bool[Tensor, "batch time *entries"] | None = None,  # the first axes of `x`, or all
    dim: int | tuple[int, ...] = 1,
) -> Float[Tensor, ...]:
    """Return the mean over the valid steps or entries, 0 if there are none; the others must be finite.

    `dim` is one or more axes of the mask, by default the time axis.
    """
    if mask is None:
        return x.mean(dim)
    weight = mask.reshape(*mask.shape, *[1] * (x.dim() - mask.dim()))
    return (x * weight).sum(dim) / weight.sum(dim).clamp(min=1)


def batch_norm(
    x: Float[Tensor, "*steps channels"],
    running: Running,
    weight: PerChannel | None = None,
    bias: PerChannel | None = None,
    mask: Bool[Tensor, ...] | None = None,  # the axes of steps
    *,
    training: bool = True,
    eps: float = 1e-3,
    levels: bool = False,
) -> Tensor:
    """Normalise each channel, or with `levels` each level of `(*steps, order, width)`.

    In training, mean and variance are those of the valid steps of the batch, and the running statistics are
    updated in place; otherwise the running statistics are used. Masked steps must be finite, and become 0.
    """
    inner = x.shape[-1] if levels else None
    if training:
        return _batch_norm(x, mask, weight, bias, running, Settings(eps, inner))
    mean, variance = running.mean.to(x.dtype), running.variance.to(x.dtype)
    rows = x.reshape(-1, len(mean), inner or 1)
    y = torch_F.batch_norm(rows, mean, variance, weight, bias, eps=eps)
    return (y if mask is None else y * mask.reshape(-1, 1, 1)).reshape(x.shape)
