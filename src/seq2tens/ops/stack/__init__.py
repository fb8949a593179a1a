"""A stack of LS2T layers, each normalised, as one operation, with or without residual connections around it.

On short sequences most of the time would otherwise pass between the many small parts.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from seq2tens.ops import dispatch
from seq2tens.ops.batch_norm import Running, Settings
from seq2tens.ops.stack import cpu, reference
from seq2tens.ops.stack.reference import Ends, Layer, Mask, Options, Shortcut, Steps

dispatch.register("stack", "cpu", cpu.stack, cpu.unsupported)
dispatch.register("stack", "reference", reference.stack, dispatch.always_supported)
dispatch.register("residual_stack", "cpu", cpu.residual_stack, cpu.residual_unsupported)
dispatch.register("residual_stack", "reference", reference.residual_stack, dispatch.always_supported)

__all__ = ["Ends", "Layer", "Options", "Shortcut", "normalized_stack", "shortcut_stack"]


def normalized_stack(
    x: Steps,
    mask: Mask | None,
    layers: Sequence[Layer],
    options: Sequence[Options],
    running: Sequence[Running],
) -> Tensor:
    """Each layer takes the levels of the one before, flattened; the last one's are returned.

    Every level is normalised with its mean and variance over the batch, which the running ones of each layer
    follow. Steps that do not count must come last; their levels become 0.
    """
    y: Tensor = dispatch.run("stack", None, x, mask, layers, options, running)
    return y


def shortcut_stack(
    features: Steps,
    x: Float[Tensor, "batch time in_features"],
    mask: Mask | None,
    layers: Sequence[Layer],
    options: Sequence[Options],
    ends: Ends,
    settings: Settings,
    running: Sequence[Running],
) -> Float[Tensor, "batch out_features"]:
    """`features`, normalised, and the start shortcut of `x` enter the stack; its last levels and the end
    shortcut of the mean of `features` over time leave it.

    All statistics are those of the batch, which the running ones follow: of each layer, then of `features`,
    start and end. Steps that do not count come last in `features` and `x`, and are 0.
    """
    arguments = (features, x, mask, layers, options, ends, settings, running)
    y: Tensor = dispatch.run("residual_stack", None, *arguments)
    return y
