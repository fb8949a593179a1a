"""The LS2T recursion in operations that every runtime supports, for any number of steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from seq2tens.ops.ls2t import Recursion, reference

Step = Callable[..., tuple[Tensor, Tensor]]


def scan(
    step: Step, initial: Tensor, inputs: Sequence[Tensor], constants: Sequence[Tensor] = ()
) -> tuple[Tensor, Tensor]:
    """Run `step(state, *inputs, *constants) -> (state, output)` along axis 1; return last state and outputs.

    The scan is one node of the graph, whatever the number of steps; a Python loop would be unrolled.
    """
    time_first = [tensor.transpose(0, 1) for tensor in inputs]
    state, outputs = torch.ops.higher_order.scan(
        lambda *arguments: list(step(*arguments)), [initial], time_first, tuple(constants)
    )
    return state, outputs.transpose(0, 1)


def ls2t(*arguments: Any) -> tuple[Tensor, ...]:
    """Return what the operation `seq2tens::ls2t` returns: levels along time, final state, nothing saved."""
    recursion = Recursion.of(arguments)
    levels, final = reference.ls2t(recursion) if recursion.powers is None else _fading(recursion)
    if not recursion.return_sequences:
        levels = levels.new_empty(levels.shape[0], 0, *levels.shape[-2:])
    checkpoints = final.new_empty(final.shape[0], 0, *final.shape[1:], dtype=torch.float64)
    return levels, final, checkpoints, final.new_empty(0)


# For `torch.export.ExportedProgram.run_decompositions`.
DECOMPOSITIONS = {torch.ops.seq2tens.ls2t.default: ls2t}


def _fading(recursion: Recursion) -> tuple[Tensor, Tensor]:
    """Run a recursion with decay step by step; the reference has a loop that depends on the length."""
    x, weight, bias, coefficients, powers, mask, state, chains, reverse, *_ = recursion
    assert powers is not None
    if state is None:
        state = x.new_zeros(x.shape[0], len(chains.component), weight.shape[2])
    if mask is None:
        mask = x.new_ones(x.shape[:2], dtype=torch.bool)
    if reverse:
        x, mask = x.flip(1), mask.flip(1)
    factors = reference.project(x, weight, bias, mask).permute(1, 2, 0, 3)
    terms = x.new_ones(1) if coefficients is None else coefficients

    def step(state: Tensor, factors: Tensor, valid: Tensor, *constants: Tensor) -> tuple[Tensor, Tensor]:
        gain, terms = constants
        before = (state * torch.where(valid[:, None, None], gain, 1.0)).unbind(1)
        inflows = (
            reference.increment(s, chains, list(before), factors.transpose(0, 1), terms)
            for s in range(len(before))
        )
        after = [old + new for old, new in zip(before, inflows, strict=True)]
        levels = torch.stack([after[s] for s in chains.output], dim=1)
        return torch.stack(after, dim=1), levels.to(x.dtype)

    gain = torch.stack([powers[depth] for depth in chains.depth])  # a list as index would be a constant
    final, levels = scan(step, state.to(gain.dtype), [factors, mask], [gain, terms])
    return levels.flip(1) if reverse else levels, final.to(x.dtype)
