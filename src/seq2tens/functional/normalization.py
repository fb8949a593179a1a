"""Batch normalisation over the steps that count, and the mean over them."""

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
    """Mean over the valid steps or entries, the others being finite; 0 if there is none.

    `dim` are axes of the mask, by default that of time.
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

    In training mean and variance are those of the batch, over the steps that count, and the running ones
    follow them in place; otherwise they are the running ones. Steps that do not count must be finite, and
    become 0.
    """
    inner = x.shape[-1] if levels else None
    if training:
        return _batch_norm(x, mask, weight, bias, running, Settings(eps, inner))
    mean, variance = running.mean.to(x.dtype), running.variance.to(x.dtype)
    rows = x.reshape(-1, len(mean), inner or 1)
    y = torch_F.batch_norm(rows, mean, variance, weight, bias, eps=eps)
    return (y if mask is None else y * mask.reshape(-1, 1, 1)).reshape(x.shape)
