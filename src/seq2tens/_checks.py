"""Argument checks, shared by all public functions: each error names the argument, the rule and the value."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from seq2tens._errors import ArgumentError as ArgumentError
from seq2tens._errors import choice as choice
from seq2tens._errors import positive_int as positive_int
from seq2tens._errors import require as require

T = TypeVar("T")
Lengths = Int[Tensor | np.ndarray, " batch"] | Sequence[int]  # lengths of the sequences of a batch


def floating(name: str, tensor: Tensor) -> None:
    """Require a real floating-point tensor."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"`{name}` must be a torch.Tensor, got {type(tensor).__name__}")
    if not tensor.is_floating_point():
        raise TypeError(f"`{name}` must have a floating-point dtype, got {tensor.dtype}")


def shape(name: str, tensor: Tensor, expected: tuple[int, ...], meaning: str) -> None:
    """Require an exact shape; `meaning` names the axes."""
    if tuple(tensor.shape) != expected:
        raise ArgumentError(f"`{name}` must have shape {meaning} = {expected}, got {tuple(tensor.shape)}")


def sequences(name: str, x: Tensor) -> None:
    """Require a batch of sequences, `(batch, time, channels)`."""
    floating(name, x)
    if x.dim() != 3:
        raise ArgumentError(
            f"`{name}` must have 3 axes (batch, time, channels), got {x.dim()} with shape {tuple(x.shape)}"
        )


def not_empty(name: str, x: Tensor) -> None:
    """Require at least one sequence and at least one step."""
    if x.shape[0] == 0:
        raise ArgumentError(f"`{name}` must hold at least one sequence, got an empty batch {tuple(x.shape)}")
    if x.shape[1] == 0:
        raise ArgumentError(
            f"`{name}` must have at least one time step, got an empty time axis {tuple(x.shape)}; "
            "an empty sequence inside a batch is a length of 0"
        )


def same_device(**tensors: Tensor | None) -> None:
    """Require all tensors to be on the device of the first one; those that are None are skipped."""
    if len({tensor.device for tensor in tensors.values() if tensor is not None}) <= 1:
        return
    (first, like), *others = tensors.items()
    for name, tensor in others:
        if tensor is not None and like is not None and tensor.device != like.device:
            raise ArgumentError(
                f"`{name}` must be on the device of `{first}`, {like.device}, got {tensor.device}"
            )


def between(name: str, value: float, low: float, high: float, *, low_included: bool = False) -> None:
    """Require a number in an interval that excludes `high` and, by default, `low`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"`{name}` must be a number, got {type(value).__name__}")
    inside = low < value < high or (low_included and value == low)
    bracket = "[" if low_included else "("
    require(inside, f"`{name}` must lie in {bracket}{low}, {high}), got {value}")


def from_fields(cls: type[T], data: Mapping[str, Any], name: str) -> T:
    """Build a dataclass from JSON data; an unknown key is an error."""
    if not isinstance(data, Mapping):
        raise TypeError(f"`{name}` must be a mapping, got {type(data).__name__}")
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    known = {field.name for field in fields}
    unknown = sorted(set(data) - known)
    require(not unknown, f"`{name}` must only have the keys {sorted(known)}, got also {unknown}")
    needed = {f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING}
    missing = sorted(needed - set(data))
    require(not missing, f"`{name}` must have the keys {sorted(needed)}, got none for {missing}")
    return cls(**data)


def in_func_transform(tensor: Tensor) -> bool:
    """Whether torch.func (vmap, grad, …) has wrapped the tensor; torch has no public function for this."""
    return not torch.compiler.is_compiling() and torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def values_hidden(tensor: Tensor) -> bool:
    """Whether values cannot be read now: inside torch.compile or torch.func, or on the meta device."""
    return torch.compiler.is_compiling() or tensor.is_meta or in_func_transform(tensor)


def step_mask(x: Tensor, mask: Tensor | None, lengths: Lengths | None) -> Tensor | None:
    """Combine a boolean mask `(batch, time)`, True for valid steps, and lengths `(batch,)` into one mask.

    Arrays and lists become tensors.
    """
    batch, time = x.shape[:2]
    steps = None if mask is None else _as_tensor("mask", mask, x.device)
    if steps is not None:
        if steps.dtype != torch.bool:
            raise TypeError(f"`mask` must be boolean (True where a step counts), got {steps.dtype}")
        shape("mask", steps, (batch, time), "(batch, time)")
        same_device(x=x, mask=steps)
    if lengths is None:
        return steps
    counts = _as_tensor("lengths", lengths, x.device)
    _check_lengths(counts, batch, time)
    inside = torch.arange(time, device=x.device) < counts.to(x.device)[:, None]
    return inside if steps is None else steps & inside


def _as_tensor(name: str, value: Any, device: torch.device) -> Tensor:
    if isinstance(value, Tensor):
        return value
    try:
        tensor = torch.tensor(value, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        message = f"`{name}` must be a tensor, an array or a list, got {value!r}"
        raise TypeError(message) from error
    # unsigned integers cannot be compared with others
    return tensor.long() if tensor.dtype in (torch.uint16, torch.uint32, torch.uint64) else tensor


def _check_lengths(lengths: Tensor, batch: int, time: int) -> None:
    if lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool:
        raise TypeError(f"`lengths` must be integers, got {lengths.dtype}")
    shape("lengths", lengths, (batch,), "(batch,)")
    if values_hidden(lengths):
        return
    invalid = (lengths < 0) | (lengths > time)
    if bool(invalid.any()):
        index = int(invalid.nonzero()[0])
        raise ArgumentError(
            f"`lengths` must lie in 0..{time} (the time axis of `x`), "
            f"got {int(lengths[index])} at index {index}"
        )
