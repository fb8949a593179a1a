"""The full feature map Φ(x_1, …, x_L) = φ(x_1) ··· φ(x_L), all coordinates up to a given order."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2tens._checks import choice, floating, positive_int, require, sequences, shape, step_mask
from seq2tens.algebra.free_tensor import FreeTensor
from seq2tens.algebra.lifts import Lift, PowerLift, inverse_factorials
from seq2tens.ops import full_precision
from seq2tens.ops.full_map import full_map, reference_scan

Backend = Literal["auto", "reference", "cpu"]


def seq2tens(
    x: Float[Tensor, "batch time dim"],
    order: int,
    lift: str | Lift = "linear",
    *,
    mask: Bool[Tensor, "batch time"] | None = None,
    lengths: Int[Tensor, " batch"] | None = None,
    return_sequences: bool = False,
    backend: Backend | None = None,
) -> FreeTensor:
    """Return Φ of each sequence, or of each of its prefixes with `return_sequences`.

    `lift` is "linear" (also "1+x"), "exp" (exp(x) up to the given order; then Φ of the increments of a path
    is its signature), or a lift as in `seq2tens.algebra.lifts`. Steps outside `mask` or beyond `lengths`
    contribute nothing, whatever they hold. The empty sequence gives the unit. The batch shape of the result
    is `(batch,)` or `(batch, time)`. Half-precision input is computed and returned in float32, because level
    2 can already exceed its range. On CPUs power lifts have fused kernels (`backend="cpu"`), and their levels
    are views of the single tensor that `flatten` returns; `backend="reference"` is plain PyTorch.
    """
    positive_int("order", order)
    x, valid = valid_steps(x, mask, lengths)
    coefficients = _coefficients(lift, order)
    if coefficients is not None:
        flat = full_map(x, coefficients, order, return_sequences, backend=backend)
        return _OneBuffer(flat, x.shape[2], order)
    choice("backend", backend, (None, "auto", "reference", "cpu"))
    if backend == "cpu":
        raise RuntimeError("`backend` 'cpu' cannot run here: `lift` is not a PowerLift")
    with full_precision(x):
        levels = reference_scan(_lifted(x, valid, lift), order, return_sequences)
    scalar = levels[0].new_ones(levels[0].shape[:-1])
    return FreeTensor((scalar, *levels))


def signature(
    path: Float[Tensor, "batch time dim"], order: int, *, backend: Backend | None = None
) -> FreeTensor:
    """Return the signature of the piecewise linear path through the given points, up to `order`."""
    sequences("path", path)
    require(path.shape[1] > 0, f"`path` must have at least one point, got shape {tuple(path.shape)}")
    positive_int("order", order)
    path, _ = valid_steps(path, None, None)
    flat = full_map(path, inverse_factorials(order), order, False, increments=True, backend=backend)
    return _OneBuffer(flat, path.shape[2], order)


class _OneBuffer(FreeTensor):
    """An element stored as one tensor: `flatten` copies nothing, and levels are views, made on demand."""

    _flat: Tensor
    _shape: tuple[int, int]

    def __init__(self, flat: Tensor, dim: int, order: int) -> None:
        # no checks: they take longer than a small signature
        for name, value in (("_flat", flat), ("_shape", (dim, order))):
            object.__setattr__(self, name, value)

    @cached_property
    def levels(self) -> tuple[Tensor, ...]:
        flat, (dim, order) = self._flat, self._shape
        parts = flat.split([dim**m for m in range(order + 1)], dim=-1)
        return tuple(part.view(flat.shape[:-1] + (dim,) * m) for m, part in enumerate(parts))

    def flatten(self, *, scalar: bool = True) -> Tensor:
        return self._flat if scalar else self._flat[..., 1:]


def valid_steps(x: Tensor, mask: Tensor | None, lengths: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Check the steps; return them in at least float32, 0 where masked, and the joint mask."""
    sequences("x", x)
    require(x.shape[0] > 0, f"`x` must hold at least one sequence, got an empty batch {tuple(x.shape)}")
    require(x.shape[2] > 0, f"`x` must have at least one channel, got shape {tuple(x.shape)}")
    valid = step_mask(x, mask, lengths)
    if x.dtype in (torch.float16, torch.bfloat16):
        x = x.float()
    if valid is None:
        return x, None
    valid = valid.to(x.device)
    return torch.where(valid.unsqueeze(-1), x, 0.0), valid


def _coefficients(lift: str | Lift, order: int) -> Tensor | None:
    """Return the coefficients of a power lift, or None for another lift."""
    if isinstance(lift, str):
        choice("lift", lift, ("linear", "1+x", "exp"))
        return inverse_factorials(order if lift == "exp" else 1)
    if not callable(lift):
        raise TypeError(f"`lift` must be a name or a callable, got {type(lift).__name__}")
    # a subclass may have a `forward` of its own
    return lift.coefficients if type(lift) is PowerLift else None


def _lifted(x: Tensor, valid: Tensor | None, lift: Any) -> list[Tensor]:
    """Return the levels of φ at every step, after checking their shapes; 0 at masked steps."""
    levels = list(lift(x))
    require(len(levels) > 0, "`lift` must return at least one level, got an empty list")
    floating("lift(x)[0]", levels[0])
    dim = levels[0].shape[-1] if levels[0].dim() == 3 else 0
    for j, level in enumerate(levels, 1):
        expected = (*x.shape[:2], *(dim,) * j)
        shape(f"lift(x)[{j - 1}]", level, expected, f"(batch, time, {j} axes of one size)")
    if valid is None:
        return levels
    # φ need not map 0 to 1
    return [
        torch.where(valid.reshape(valid.shape + (1,) * j), level, 0.0) for j, level in enumerate(levels, 1)
    ]
