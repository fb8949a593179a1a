"""The full map of a power lift: all coordinates up to an order, as one differentiable operation."""

from __future__ import annotations

from torch import Tensor

from seq2tens.ops import dispatch
from seq2tens.ops.full_map import cpu, reference
from seq2tens.ops.full_map.reference import reference_scan

dispatch.register("full_map", "cpu", cpu.full_map, dispatch.cpu_unsupported)
dispatch.register("full_map", "reference", reference.full_map, dispatch.always_supported)

__all__ = ["full_map", "reference_scan"]


def full_map(
    x: Tensor,
    coefficients: Tensor,
    order: int,
    return_sequences: bool,
    increments: bool = False,
    *,
    backend: str | None = None,
) -> Tensor:
    """Return all coordinates of Φ for the lift with these coefficients, level 0 first, along one axis.

    With `increments` the steps are the differences of the points x. A step of 0 contributes nothing.
    """
    arguments = (x, coefficients, order, return_sequences, increments)
    coordinates: Tensor = dispatch.run("full_map", backend, *arguments)
    return coordinates
