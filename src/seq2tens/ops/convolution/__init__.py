"""Convolution over time, axes `(batch, time, channels)`; its gradients do not depend on the thread count."""

from __future__ import annotations

from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor

from seq2tens.ops import dispatch
from seq2tens.ops.convolution import cpu, reference
from seq2tens.ops.convolution.reference import Convolution

dispatch.register("convolution", "cpu", cpu.convolve, cpu.unsupported)
dispatch.register("convolution", "reference", reference.convolve, dispatch.always_supported)
dispatch.register("convolution_prepared", "cpu", cpu.prepare, cpu.prepare_unsupported)
dispatch.register("convolution_prepared", "reference", reference.prepare, dispatch.always_supported)

__all__ = ["convolve", "prepare"]


def convolve(
    x: Float[Tensor, "batch time in_features"],
    weight: Float[Tensor, "out_features in_features kernel"],
    bias: Float[Tensor, " out_features"] | None = None,
    *,
    padding: tuple[int, int] = (0, 0),
    mask: Bool[Tensor, "batch time"] | None = None,
    train_bias: bool = True,
) -> Float[Tensor, "batch positions out_features"]:
    """Convolve; the output has one step for each position where the kernel fits.

    `padding` is the number of zeros that precede and follow each sequence; steps where `mask` is False, which
    must be finite, also count as zeros. If `train_bias` is False, the gradient of the bias is 0.
    """
    y: Tensor = dispatch.run("convolution", None, Convolution(x, weight, bias, mask, padding, train_bias))
    return y


def prepare(
    weight: Float[Tensor, "out_features in_features kernel"], bias: Float[Tensor, " out_features"] | None
) -> Callable[[Tensor], Tensor]:
    """Return the function x → `convolve(x, weight, bias)`, without gradients.

    What does not depend on `x` is done once, so that a call for a few steps is short. The weights must not
    change afterwards.
    """
    prepared: Callable[[Tensor], Tensor] = dispatch.run("convolution_prepared", None, weight, bias)
    return prepared
