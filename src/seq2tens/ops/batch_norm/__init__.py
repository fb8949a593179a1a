"""Batch normalisation over the rows that count, as one operation: in torch's own it would be a dozen."""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor

from seq2tens.ops import dispatch
from seq2tens.ops.batch_norm import cpu, reference
from seq2tens.ops.batch_norm.reference import Each, Normalized, Running, Settings, Values

dispatch.register("batch_norm", "cpu", cpu.normalize, cpu.unsupported)
dispatch.register("batch_norm", "reference", reference.normalize, dispatch.always_supported)
dispatch.register("batch_norm_of_product", "cpu", cpu.normalize_product, cpu.unsupported)
dispatch.register(
    "batch_norm_of_product", "reference", reference.normalize_product, dispatch.always_supported
)

__all__ = ["Each", "Normalized", "Running", "Settings", "Values", "normalize", "normalize_product"]


def normalize(
    x: Values,
    mask: Bool[Tensor, "*rows"] | None,
    weight: Each | None,
    bias: Each | None,
    settings: Settings,
) -> Normalized:
    """Normalise each channel with mean and variance of the rows where `mask` is True; the others become 0.

    Rows that do not count must be finite. No gradient flows through the statistics that are returned.
    """
    normalized: Normalized = dispatch.run("batch_norm", None, x, mask, weight, bias, settings)
    return normalized


def normalize_product(
    rows: Float[Tensor, "*steps features"],
    matrix: Float[Tensor, "channels features"],
    shift: Each,
    mask: Bool[Tensor, "*steps"] | None,
    weight: Each | None,
    bias: Each | None,
    settings: Settings,
) -> Normalized:
    """`normalize` of `rows` times the transpose of `matrix` plus `shift`; see `reference`."""
    arguments = (rows, matrix, shift, mask, weight, bias, settings)
    normalized: Normalized = dispatch.run("batch_norm_of_product", None, *arguments)
    return normalized
