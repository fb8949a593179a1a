"""Batch normalisation over the rows that count, as one operation: in torch's own it would be a dozen.

`_normalize_kernels` does the arithmetic on torch's threads; it is imported, with numba, on the first call.
"""

from __future__ import annotations

import math
from array import array
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from seq2tens._checks import in_func_transform
from seq2tens.ops._operation import is_unobserved
from seq2tens.ops._threads import launch

Rows = Float[Tensor, "rows channels inner"]
Each = Float[Tensor, " channels"]
_WORTH_A_TASK = 2**15  # numbers, some 10 µs


class Normalized(NamedTuple):
    """Normalised rows, and the statistics that did it."""

    rows: Rows
    mean: Each
    variance: Each


def normalize_rows(
    x: Rows, mask: Bool[Tensor, " rows"] | None, weight: Each | None, bias: Each | None, eps: float
) -> Normalized:
    """Normalise each channel with mean and variance of the rows where `mask` is True; the others become 0.

    Rows that do not count must be finite. No gradient flows through the statistics that are returned.
    """
    fused = x.device.type == "cpu" and x.numel() > 0 and is_unobserved(x) and not in_func_transform(x)
    if not fused:
        y, mean, variance = _composed(x, mask, weight, bias, eps)
        return Normalized(y, mean.detach(), variance.detach())
    return Normalized(*_NormalizeRows.apply(x, mask, weight, bias, eps))


def _composed(
    x: Rows, mask: Bool[Tensor, " rows"] | None, weight: Each | None, bias: Each | None, eps: float
) -> Normalized:
    """The definition, in operations with which torch can do anything."""
    counts = x.new_ones(len(x), 1, 1) if mask is None else mask.to(x.dtype)[:, None, None]
    total = counts.sum().clamp(min=1) * x.shape[2]
    mean = (counts * x).sum((0, 2)) / total
    centred = x - mean[:, None]
    variance = (counts * centred.square()).sum((0, 2)) / total
    y = centred * (variance + eps).rsqrt()[:, None]
    y = y if weight is None else y * weight[:, None]
    y = y if bias is None else y + bias[:, None]
    return Normalized(y * counts, mean, variance)


class _NormalizeRows(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, mask: Tensor | None, weight: Tensor | None, bias: Tensor | None, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        x, mask = x.contiguous(), None if mask is None else mask.contiguous()
        y, mean, variance = torch.empty_like(x), x.new_empty(x.shape[1]), x.new_empty(x.shape[1])
        _run("forward", x, eps, mask=mask, weight=weight, bias=bias, y=y, mean=mean, variance=variance)
        ctx.save_for_backward(x, mask, weight, bias, mean, variance)
        ctx.eps = eps
        ctx.mark_non_differentiable(mean, variance)
        return y, mean, variance

    @staticmethod
    def backward(ctx: Any, dy: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, mask, weight, bias, mean, variance = ctx.saved_tensors
        if torch.is_grad_enabled():  # to be differentiated again, for which there is no kernel
            return _differentiable(dy, x, mask, weight, bias, ctx.eps)
        dx, dweight, dbias = torch.empty_like(x), torch.empty_like(mean), torch.empty_like(mean)
        given = {"mask": mask, "weight": weight, "mean": mean, "variance": variance, "dy": dy.contiguous()}
        _run("backward", x, ctx.eps, **given, dx=dx, dweight=dweight, dbias=dbias)
        return dx, None, None if weight is None else dweight, None if bias is None else dbias, None


def _differentiable(
    dy: Tensor, x: Tensor, mask: Tensor | None, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor | None, ...]:
    present = [t for t in (x, weight, bias) if t is not None and t.requires_grad]
    y = _composed(x, mask, weight, bias, eps).rows
    found = iter(torch.autograd.grad(y, present, dy, create_graph=True))
    dx, dweight, dbias = (
        next(found) if t is not None and t.requires_grad else None for t in (x, weight, bias)
    )
    return dx, None, dweight, dbias, None


def _run(name: str, x: Rows, eps: float, **tensors: Tensor | None) -> None:
    shared, at, tasks, _ = _layout(
        tuple(x.shape), eps, *(tensors.get(field) is not None for field in ("mask", "weight", "bias"))
    )
    record = shared[:]
    record[at["x"]] = x.data_ptr()
    for field, tensor in tensors.items():
        if tensor is not None:
            record[at[field]] = tensor.data_ptr()
    launch(_address(f"{name}{8 * x.itemsize}"), record, at, tasks)


@lru_cache(maxsize=1024)
def _layout(
    shape: tuple[int, ...], eps: float, masked: bool, weighted: bool, biased: bool
) -> tuple[array[int], dict[str, int], int, array[float]]:
    """A record without addresses of tensors, the places of its fields, tasks, and memory that it knows."""
    from seq2tens.ops._normalize_kernels import AT, FIELDS

    rows, channels, inner = shape
    tasks = max(1, min(channels, math.prod(shape) // _WORTH_A_TASK, channels * inner // 32, 16))
    numbers = array("d", [eps])
    fields = {
        "rows": rows, "channels": channels, "inner": inner, "tasks": tasks, "eps": numbers.buffer_info()[0],
        "masked": masked, "weighted": weighted, "biased": biased, "scratch_size": 48 * channels * inner,
    }  # fmt: skip
    return array("q", [int(fields.get(name, 0)) for name in FIELDS]), AT, tasks, numbers


@lru_cache(maxsize=4)
def _address(name: str) -> int:
    from seq2tens.ops._normalize_kernels import entry

    return entry(name).address
