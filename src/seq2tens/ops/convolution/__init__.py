"""Convolution over time, axes `(batch, time, channels)`; its gradients do not depend on the thread count."""

from __future__ import annotations

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from seq2tens.ops import dispatch
from seq2tens.ops.convolution import cpu, reference

dispatch.register("convolution", "cpu", cpu.convolve, cpu.unsupported)
dispatch.register("convolution", "reference", reference.convolve, dispatch.always_supported)
dispatch.register("convolution_prepared", "cpu", cpu.prepare, cpu.prepare_unsupported)
dispatch.register("convolution_prepared", "reference", reference.prepare, dispatch.always_supported)

__all__ = ["convolve", "prepare"]


def convolve(
    x: Float[Tensor, "batch time in_features"],
    weight: Float[Tensor, "out_features in_features kernel"],
    bias: Float[Tensor, " out_features"] | None = None,
    train_bias: bool = True,
) -> Float[Tensor, "batch time-kernel+1 out_features"]:
    """Convolve without padding; the output has one step for each position where the kernel fits.

    If `train_bias` is False, the gradient of the bias is 0.
    """
    y: Tensor = dispatch.run("convolution", None, x, weight, bias, train_bias)
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
