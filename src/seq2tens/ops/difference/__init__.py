"""Differences of adjacent steps, axes `(batch, time, channels)`, as one operation."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from seq2tens.ops import dispatch
from seq2tens.ops.difference import cpu, reference

dispatch.register("difference", "cpu", cpu.difference, cpu.unsupported)
dispatch.register("difference", "reference", reference.difference, dispatch.always_supported)

__all__ = ["difference"]


def difference(
    x: Float[Tensor, "batch time channels"], *, reverse: bool = False
) -> Float[Tensor, "batch time channels"]:
    """Subtract from each step the one before it or, with `reverse`, the one after it; 0 beyond the ends."""
    y: Tensor = dispatch.run("difference", None, x, reverse)
    return y
