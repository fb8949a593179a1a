"""Batch normalisation over the valid rows as one operation; operations of torch would need a dozen."""

from __future__ import annotations

from jaxtyping import Bool
from torch import Tensor

from seq2tens.ops import dispatch
from seq2tens.ops.batch_norm import cpu, reference
from seq2tens.ops.batch_norm.reference import PerChannel, Running, Settings, Values

dispatch.register("batch_norm", "cpu", cpu.batch_norm, cpu.unsupported)
dispatch.register("batch_norm", "reference", reference.batch_norm, dispatch.always_supported)

__all__ = ["PerChannel", "Running", "Settings", "Values", "batch_norm"]


def batch_norm(
    x: Values,
    mask: Bool[Tensor, "*rows"] | None,
    weight: PerChannel | None,
    bias: PerChannel | None,
    running: Running | None,
    settings: Settings,
) -> Values:
    """Normalise with the statistics of the batch and update the running ones; see `reference`."""
    y: Tensor = dispatch.run("batch_norm", None, x, mask, weight, bias, running, settings)
    return y
