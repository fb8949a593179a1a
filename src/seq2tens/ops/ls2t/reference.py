"""The LS2T recursion in plain PyTorch: the definition that every other backend is tested against."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from seq2tens.ops.chains import Chains
from seq2tens.ops.dispatch import full_precision
from seq2tens.ops.ls2t.recursion import Recursion


def ls2t(recursion: Recursion) -> tuple[Tensor, Tensor]:
    """Return the levels along time (or at the end) and the state after the last step.

    For a state h with word a_1 … a_m, lift coefficients c and decay λ (whose m-th power is `powers[m]`),
    each step does h_m ← λ^m h_m + Σ_j c_j · λ^(m-j) h_(m-j) · a_(m-j+1) ··· a_m. Levels are computed one
    after the other, each for all steps at once, because level m only depends on lower levels.
    """
    x, weight, bias, coefficients, powers, mask, state, chains, reverse, return_sequences, _ = recursion
    if coefficients is None:
        coefficients = x.new_ones(1)
    if state is None:
        state = x.new_zeros(x.shape[0], len(chains.component), weight.shape[2])
    if reverse:
        x, mask = x.flip(1), None if mask is None else mask.flip(1)
    with full_precision(x):
        factors = project(x, weight, bias, mask)
    before: list[Tensor] = []  # value of each state at the beginning of a step, decay already applied
    paths: list[Tensor] = []
    for s, depth in enumerate(chains.depth):
        inflow = increment(s, chains, before, factors, coefficients)
        gain = _gain(powers, depth, mask)
        path = _accumulate(inflow, gain, state[:, s])
        paths.append(path)
        previous = torch.cat([state[:, s : s + 1], path[:, :-1]], dim=1)
        before.append(previous if gain is None else gain * previous)
    final = torch.stack([path[:, -1] for path in paths], dim=1).to(x.dtype)  # float64 if there is decay
    if not return_sequences:
        return final[:, list(chains.output)], final
    output = torch.stack([paths[s] for s in chains.output], dim=2).to(x.dtype)
    return (output.flip(1) if reverse else output), final


def prepare(recursion: Recursion) -> Callable[[Tensor, Tensor | None, Tensor | None], tuple[Tensor, Tensor]]:
    """Return the function (x, mask, state) → `ls2t` of a recursion with these parameters."""
    return lambda x, mask, state: ls2t(recursion._replace(x=x, mask=mask, state=state))


def project(x: Tensor, weight: Tensor, bias: Tensor | None, mask: Tensor | None) -> Tensor:
    """Return inner products with every component, `(components, batch, time, width)`; 0 at masked steps."""
    if mask is not None:  # before the product, because padding may hold NaN
        x = torch.where(mask[..., None], x, 0.0)
    factors = torch.einsum("btd,cdn->cbtn", x, weight)
    if bias is not None:
        factors = factors + bias[:, None, None]
    return factors if mask is None else torch.where(mask[..., None], factors, 0.0)


def increment(s: int, chains: Chains, before: list[Tensor], factors: Tensor, coefficients: Tensor) -> Tensor:
    """Return what a step adds to state s: terms that pair it with the last j vectors, j = 1, …, p."""
    total: Tensor | None = None
    product: Tensor | None = None
    ancestor = s
    for c in coefficients.unbind():
        if ancestor < 0:
            break
        factor = factors[chains.component[ancestor]]
        product = factor if product is None else product * factor
        ancestor = chains.parent[ancestor]
        term = c * product if ancestor < 0 else c * before[ancestor] * product
        total = term if total is None else total + term
    assert total is not None
    return total


def _gain(powers: Tensor | None, depth: int, mask: Tensor | None) -> Tensor | None:
    """Return the decay factor of one step for a state of this depth; masked steps do not decay."""
    if powers is None:
        return None
    gain = powers[depth]
    return gain if mask is None else torch.where(mask[..., None], gain, 1.0)


def _accumulate(inflow: Tensor, gain: Tensor | None, initial: Tensor) -> Tensor:
    """Compute h[i] = gain[i] · h[i-1] + inflow[i] along axis 1."""
    if gain is None:
        return initial[:, None] + inflow.cumsum(1)
    gain = gain.expand_as(inflow)
    first = inflow[:, :1] + gain[:, :1] * initial[:, None]
    path = torch.cat([first, inflow[:, 1:]], dim=1)
    step = 1
    while step < path.shape[1]:  # each round doubles the number of steps that a value covers
        reached = path[:, step:] + gain[:, step:] * path[:, :-step]
        gain = torch.cat([gain[:, :step], gain[:, step:] * gain[:, :-step]], dim=1)
        path = torch.cat([path[:, :step], reached], dim=1)
        step *= 2
    return path
