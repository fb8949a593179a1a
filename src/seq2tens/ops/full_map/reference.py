"""The full map in plain PyTorch: the definition that the kernels are tested against."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor
from torch.nn.functional import pad

from seq2tens.ops.dispatch import full_precision


def reference_scan(levels: Sequence[Tensor], order: int, return_sequences: bool) -> list[Tensor]:
    """Return levels 1..order of Φ from the lifted steps: `levels[j-1]` is φ_j(x), `(batch, time, e, …, e)`.

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


def full_map(x: Tensor, coefficients: Tensor, order: int, return_sequences: bool, increments: bool) -> Tensor:
    """Return all coordinates of Φ; see `ops.full_map.full_map`."""
    if increments:
        x = x.diff(dim=1)
    powers = [x]
    for _ in range(1, min(order, len(coefficients))):
        powers.append((powers[-1].unsqueeze(-1) * x.unsqueeze(-2)).flatten(2))
    steps = [c * power for c, power in zip(coefficients.to(x.dtype).unbind(), powers, strict=False)]
    levels = [step.reshape(x.shape[:2] + x.shape[2:] * j) for j, step in enumerate(steps, 1)]
    with full_precision(x):
        result = reference_scan(levels, order, return_sequences)
    flat = [level.flatten(2 if return_sequences else 1) for level in result]
    return torch.cat([torch.ones_like(flat[0][..., :1]), *flat], dim=-1)
