"""The functionals of all windows of a sequence, at a cost that does not depend on the length of windows."""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2tens import _checks as check
from seq2tens import ops
from seq2tens.functional.layer import Description, Weights
from seq2tens.ops.windows import slide


def sliding_ls2t(
    x: Float[Tensor, "batch time in_features"],
    window: int | Sequence[int],
    weight: Float[Tensor, "components in_features width"],
    bias: Float[Tensor, "components width"] | None = None,
    *,
    order: int,
    stride: int = 1,
    weights: Weights = "recursive",
    lift_order: int = 1,
    lift_coefficients: Float[Tensor, " lift_order"] | None = None,
    mask: Bool[Tensor, "batch time"] | None = None,
    lengths: Int[Tensor, " batch"] | None = None,
    backend: ops.Backend | None = None,
) -> Tensor | list[Tensor]:
    """Evaluate the functionals of `ls2t` on every window of `window` steps that lies within `x`.

    Time is cut into blocks as long as a window. A window is then the end of one block and the beginning of
    the next, and their values come from scans of every block in both directions: the cost is that of a few
    scans of `x`, whatever the length of a window. Nothing is subtracted or divided, so the error is that of
    `ls2t` on the window alone. The scans process a few thousand steps at a time. So does the backward pass,
    which repeats them. Apart from its result the function needs memory for a few windows.

    Args:
        x: the sequences.
        window: length of a window in steps, or a sequence of lengths.
        stride: steps from the beginning of one window to that of the next.
        mask: True for valid steps; positions of windows count all steps.

    The other arguments are those of `ls2t`. There is no `decay`.

    Returns:
        `(batch, windows, order, width)`, the i-th window beginning at step i · stride; a list of such tensors
        if `window` is a sequence.
    """
    description = Description(weight, bias, order, weights, lift_order, lift_coefficients, backend=backend)
    functionals = description.functionals(x)
    check.not_empty("x", x)
    check.positive_int("stride", stride)
    mask = check.step_mask(x, mask, lengths)
    sizes = [window] if isinstance(window, int) else list(window)
    for size in sizes:
        check.positive_int("window", size)
        check.require(
            size <= x.shape[1],
            f"`window` must lie in 1..{x.shape[1]} (the time axis of `x`), got {size}",
        )
    values = [slide(functionals, x, mask, size, stride) for size in sizes]
    return values[0] if isinstance(window, int) else values
