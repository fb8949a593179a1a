"""The full feature map Φ(x_1, …, x_L) = φ(x_1) ··· φ(x_L), all coordinates up to a given order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from seq2tens._checks import choice, floating, positive_int, require, sequences, shape, step_mask
from seq2tens.algebra.free_tensor import FreeTensor
from seq2tens.algebra.lifts import Lift, exponential, linear


def seq2tens(
    x: Float[Tensor, "batch time dim"],
    order: int,
    lift: str | Lift = "linear",
    *,
    mask: Bool[Tensor, "batch time"] | None = None,
    lengths: Int[Tensor, " batch"] | None = None,
    return_sequences: bool = False,
) -> FreeTensor:
    """Φ of each sequence, or of each of its beginnings with `return_sequences`.

    `lift` is "linear" (also "1+x"), "exp" (exp(x) to the given order: Φ of the increments of a path is
    its signature), or a lift as in `seq2tens.algebra.lifts`. Steps outside `mask` or beyond `lengths`
    contribute nothing, whatever they hold. The empty sequence gives the unit. The batch shape of the
    result is `(batch,)` or `(batch, time)`. Half-precision input is computed and returned in float32,
    as level 2 already leaves its range.
    """
    positive_int("order", order)
    x, keep = observed(x, mask, lengths)
    # autocast would send the matrix products of the recursion back to half precision
    with torch.autocast(x.device.type, enabled=False):
        levels = _lifted(x, keep, _resolve(lift, order))
        levels = reference_scan(levels, order, return_sequences)
    scalar = levels[0].new_ones(levels[0].shape[:-1])
    return FreeTensor((scalar, *levels))


def signature(path: Float[Tensor, "batch time dim"], order: int) -> FreeTensor:
    """The signature of the piecewise linear path through the given points, up to `order`."""
    sequences("path", path)
    require(path.shape[1] > 0, f"`path` must have at least one point, got shape {tuple(path.shape)}")
    return seq2tens(path.diff(dim=1), order, "exp")


def reference_scan(levels: Sequence[Tensor], order: int, return_sequences: bool) -> list[Tensor]:
    """Levels 1..order of Φ from the lifted steps: `levels[j-1]` is φ_j(x), `(batch, time, e, …, e)`.

    Φ_m[i] = Φ_m[i-1] + Σ_{j=1..min(m,p)} Φ_{m-j}[i-1] ⊗ φ_j(x_i), one level at a time, cumulative over time.
    """
    batch, time, dim = levels[0].shape
    steps = [level.reshape(batch, time, dim**j) for j, level in enumerate(levels[:order], 1)]
    before = [levels[0].new_ones(batch, time, 1)]
    result = []
    for m in range(1, order + 1):
        pairs = [(before[m - j], step) for j, step in enumerate(steps[:m], 1)]
        if m == order and not return_sequences:
            result.append(reduce(torch.add, [(past.mT @ step).flatten(1) for past, step in pairs]))
            break
        increments = [(past.unsqueeze(-1) * step.unsqueeze(-2)).flatten(2) for past, step in pairs]
        # row 0 is the empty sequence
        path = pad(reduce(torch.add, increments).cumsum(1), (0, 0, 1, 0))
        before.append(path[:, :-1])
        # a view of the last row would keep the whole path alive
        result.append(path[:, 1:] if return_sequences else path[:, -1].clone())
    axes = (batch, time) if return_sequences else (batch,)
    return [level.reshape(axes + (dim,) * m) for m, level in enumerate(result, 1)]


def observed(x: Tensor, mask: Tensor | None, lengths: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """The checked steps in at least float32, 0 where they do not count, and the joint mask."""
    sequences("x", x)
    require(x.shape[0] > 0, f"`x` must hold at least one sequence, got an empty batch {tuple(x.shape)}")
    require(x.shape[2] > 0, f"`x` must have at least one channel, got shape {tuple(x.shape)}")
    keep = step_mask(x, mask, lengths)
    if x.dtype in (torch.float16, torch.bfloat16):
        x = x.float()
    if keep is None:
        return x, None
    keep = keep.to(x.device)
    return torch.where(keep.unsqueeze(-1), x, 0.0), keep


def _resolve(lift: str | Lift, order: int) -> Lift:
    if not isinstance(lift, str):
        if not callable(lift):
            raise TypeError(f"`lift` must be a name or a callable, got {type(lift).__name__}")
        return lift
    choice("lift", lift, ("linear", "1+x", "exp"))
    return exponential(order) if lift == "exp" else linear()


def _lifted(x: Tensor, keep: Tensor | None, lift: Lift) -> list[Tensor]:
    """The levels of φ at every step, checked, and 0 at steps that do not count."""
    levels = list(lift(x))
    require(len(levels) > 0, "`lift` must return at least one level, got an empty list")
    floating("lift(x)[0]", levels[0])
    dim = levels[0].shape[-1] if levels[0].dim() == 3 else 0
    for j, level in enumerate(levels, 1):
        expected = (*x.shape[:2], *(dim,) * j)
        shape(f"lift(x)[{j - 1}]", level, expected, f"(batch, time, {j} axes of one size)")
    if keep is None:
        return levels
    # φ need not map 0 to 1
    return [torch.where(keep.reshape(keep.shape + (1,) * j), level, 0.0) for j, level in enumerate(levels, 1)]
