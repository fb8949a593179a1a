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
from torch.nn import functional as torch_F

from seq2tens._checks import in_func_transform
from seq2tens.ops._operation import is_unobserved
from seq2tens.ops._threads import launch

Values = Float[Tensor, "*rows_channels_inner"]
Each = Float[Tensor, " channels"]
_WORTH_A_TASK = 2**14  # numbers, some 10 µs


class Normalized(NamedTuple):
    """Normalised values, and the statistics that did it."""

    values: Values
    mean: Each
    variance: Each


class Settings(NamedTuple):
    """What is added to variances; where channels are, the last axis or with `inner` values each the last but
    one; whether negative results become 0; a factor for the result; and how far running statistics go to
    those of a batch."""

    eps: float
    inner: int | None = None
    rectified: bool = False
    scale: float = 1.0
    momentum: float = 0.0


class Running(NamedTuple):
    """Statistics that follow those of batches, in place."""

    mean: Each
    variance: Each

    def follow(self, mean: Each, variance: Each, momentum: float) -> None:
        """Go some way to the statistics of a batch."""
        for old, new in zip(self, (mean, variance), strict=True):
            old.lerp_(new.to(old.dtype), momentum)


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
    if _is_fused(x):
        return Normalized(*_Normalize.apply(x, mask, weight, bias, settings))
    y, mean, variance = _composed(x, mask, weight, bias, settings)
    return Normalized(y, mean.detach(), variance.detach())


def normalize_product(
    rows: Float[Tensor, "*steps features"],
    matrix: Float[Tensor, "channels features"],
    shift: Each,
    mask: Bool[Tensor, "*steps"] | None,
    weight: Each | None,
    bias: Each | None,
    settings: Settings,
) -> Normalized:
    """`normalize` of `rows` times the transpose of `matrix` plus `shift`, with less time between the two.

    The mean takes the shift away again, so it is only added to the mean that is returned. Its gradient is 0
    rather than a rounding error, out of which Adam would make steps of full size.
    """
    if _is_fused(rows):
        return Normalized(*_NormalizeProduct.apply(rows, matrix, shift, mask, weight, bias, settings))
    bias = 0 * shift if bias is None else torch.add(bias, shift, alpha=0)  # every parameter has a gradient
    y, mean, variance = normalize(torch_F.linear(rows, matrix), mask, weight, bias, settings)
    return Normalized(y, mean + shift.detach(), variance)


def _is_fused(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.numel() > 0 and is_unobserved(x) and not in_func_transform(x)


def _composed(
    x: Tensor, mask: Tensor | None, weight: Tensor | None, bias: Tensor | None, settings: Settings
) -> Normalized:
    """The definition, in operations with which torch can do anything."""
    rows = x.reshape(-1, _channels(x.shape, settings), settings.inner or 1)
    counts = x.new_ones(len(rows), 1, 1) if mask is None else mask.to(x.dtype).reshape(-1, 1, 1)
    total = counts.sum().clamp(min=1) * rows.shape[2]
    mean = (counts * rows).sum((0, 2)) / total
    centred = rows - mean[:, None]
    variance = (counts * centred.square()).sum((0, 2)) / total
    y = centred * (variance + settings.eps).rsqrt()[:, None]
    y = y if weight is None else y * weight[:, None]
    y = y if bias is None else y + bias[:, None]
    y = (y.relu() if settings.rectified else y) * (counts * settings.scale)
    return Normalized(y.reshape(x.shape), mean, variance)


def _channels(shape: torch.Size, settings: Settings) -> int:
    return shape[-1] if settings.inner is None else shape[-2]


class _Normalize(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        mask: Tensor | None,
        weight: Tensor | None,
        bias: Tensor | None,
        settings: Settings,
    ) -> Normalized:
        x, mask = x.contiguous(), None if mask is None else mask.contiguous()
        found = run_forward(x, mask, weight, bias, settings)
        ctx.save_for_backward(x, mask, weight, bias, *found)
        ctx.settings = settings
        ctx.mark_non_differentiable(found.mean, found.variance)
        return found

    @staticmethod
    def backward(ctx: Any, dy: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, mask, weight, bias, *found = ctx.saved_tensors
        if torch.is_grad_enabled():  # to be differentiated again, for which there is no kernel
            return _differentiable(dy, x, mask, weight, bias, ctx.settings)
        dx, dweight, dbias = run_backward(dy, x, mask, weight, Normalized(*found), ctx.settings)
        return dx, None, None if weight is None else dweight, None if bias is None else dbias, None


class _NormalizeProduct(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        matrix: Tensor,
        shift: Tensor,
        mask: Tensor | None,
        weight: Tensor | None,
        bias: Tensor | None,
        settings: Settings,
    ) -> Normalized:
        x, mask = torch_F.linear(rows, matrix), None if mask is None else mask.contiguous()
        found = run_forward(x, mask, weight, bias, settings)
        ctx.save_for_backward(rows, matrix, x, mask, weight, bias, *found)
        ctx.settings = settings
        shifted = found._replace(mean=found.mean + shift)
        ctx.mark_non_differentiable(shifted.mean, shifted.variance)
        return shifted

    @staticmethod
    def backward(ctx: Any, dy: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        rows, matrix, x, mask, weight, bias, *found = ctx.saved_tensors
        dx: Tensor | None
        if torch.is_grad_enabled():
            x = torch_F.linear(rows, matrix)
            dx, _mask, dweight, dbias, _settings = _differentiable(dy, x, mask, weight, bias, ctx.settings)
        else:
            dx, dweight, dbias = run_backward(dy, x, mask, weight, Normalized(*found), ctx.settings)
        assert dx is not None
        drows = dx @ matrix if ctx.needs_input_grad[0] else None
        dmatrix = dx.flatten(0, -2).mT @ rows.flatten(0, -2) if ctx.needs_input_grad[1] else None
        dscale = None if weight is None else dweight, None if bias is None else dbias
        return drows, dmatrix, torch.zeros_like(found[1]), None, *dscale, None


def _differentiable(
    dy: Tensor,
    x: Tensor,
    mask: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    settings: Settings,
) -> tuple[Tensor | None, ...]:
    present = [t for t in (x, weight, bias) if t is not None and t.requires_grad]
    y = _composed(x, mask, weight, bias, settings).values
    found = iter(torch.autograd.grad(y, present, dy, create_graph=True))
    dx, dweight, dbias = (
        next(found) if t is not None and t.requires_grad else None for t in (x, weight, bias)
    )
    return dx, None, dweight, dbias, None


def run_forward(
    x: Tensor, mask: Tensor | None, weight: Tensor | None, bias: Tensor | None, settings: Settings
) -> Normalized:
    """Normalise contiguous tensors."""
    layout = layout_of(x.shape, settings, mask is not None, weight is not None, bias is not None)
    record, at = layout.record[:], layout.at
    y, mean, variance = torch.empty_like(x), x.new_empty(layout.channels), x.new_empty(layout.channels)
    record[at["x"]], record[at["y"]] = x.data_ptr(), y.data_ptr()
    record[at["mean"]], record[at["variance"]] = mean.data_ptr(), variance.data_ptr()
    for name, given in (("mask", mask), ("weight", weight), ("bias", bias)):
        if given is not None:
            record[at[name]] = given.data_ptr()
    launch(address("forward", x.dtype), record, at, layout.tasks)
    return Normalized(y, mean, variance)


def run_backward(
    dy: Tensor,
    x: Tensor,
    mask: Tensor | None,
    weight: Tensor | None,
    found: Normalized,
    settings: Settings,
) -> tuple[Tensor, Tensor, Tensor]:
    """Derivatives by values, weight and bias; the last two are there even if these are not."""
    layout = layout_of(x.shape, settings, mask is not None, weight is not None, False)
    record, at, (y, mean, variance) = layout.record[:], layout.at, found
    dy, dx = dy.contiguous(), torch.empty_like(x)
    dweight, dbias = torch.empty_like(mean), torch.empty_like(mean)
    record[at["y"]] = y.data_ptr()
    record[at["x"]], record[at["dy"]], record[at["dx"]] = x.data_ptr(), dy.data_ptr(), dx.data_ptr()
    record[at["mean"]], record[at["variance"]] = mean.data_ptr(), variance.data_ptr()
    record[at["dweight"]], record[at["dbias"]] = dweight.data_ptr(), dbias.data_ptr()
    for name, given in (("mask", mask), ("weight", weight)):
        if given is not None:
            record[at[name]] = given.data_ptr()
    launch(address("backward", x.dtype), record, at, layout.tasks)
    return dx, dweight, dbias


class _Layout(NamedTuple):
    record: array[int]  # without addresses of tensors
    at: dict[str, int]  # places of its fields
    tasks: int
    channels: int
    numbers: array[float]  # memory that the record knows


@lru_cache(maxsize=1024)
def layout_of(shape: torch.Size, settings: Settings, masked: bool, weighted: bool, biased: bool) -> _Layout:
    from seq2tens.ops._normalize_kernels import AT, FIELDS

    channels, inner, size = _channels(shape, settings), settings.inner or 1, math.prod(shape)
    tasks = max(1, min(channels, size // _WORTH_A_TASK, channels * inner // 32, 16))
    numbers = array("d", [settings.eps, settings.scale, settings.momentum])
    first = numbers.buffer_info()[0]
    fields = {
        "rows": size // (channels * inner), "channels": channels, "inner": inner, "tasks": tasks,
        **{name: first + i * numbers.itemsize for i, name in enumerate(("eps", "scale", "momentum"))},
        "masked": masked, "weighted": weighted, "biased": biased, "rectified": settings.rectified,
        "scratch_size": 48 * channels * inner,
    }  # fmt: skip
    record = array("q", [int(fields.get(name, 0)) for name in FIELDS])
    return _Layout(record, AT, tasks, channels, numbers)


@lru_cache(maxsize=4)
def address(name: str, dtype: torch.dtype) -> int:
    from seq2tens.ops._normalize_kernels import entry

    return entry(f"{name}{8 * dtype.itemsize}").address
