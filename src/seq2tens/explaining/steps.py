"""What single steps and ordered pairs of steps add to a network's output, where it reads its sequences.

A network reads a sequence of vectors either as a mean over time, to which every step adds its part, or as the
end point of an LS2T layer, a sum of products of the factors a_1[i_1] ··· a_m[i_m] over i_1 < … < i_m. In
evaluation mode all that follows is affine.

Write a = a⁰ + Δa with the factors a⁰ of the baseline, and multiply out. Products in which Δa occurs once, at
step i, belong to step i; those in which it occurs more often belong to the first and the last of these steps.
With the recursion h and its adjoint λ (the gradient of the output), both of the baseline, this reads

    single[i]  = Σ_p h⁰_(p-1)[i-1] · Δa_p[i] · λ⁰_p[i]
    pair[i, j] = Σ_(p<q) h⁰_(p-1)[i-1] · Δa_p[i] · ⟨z_(p+1) ⊗ … ⊗ z_(q-1), Φ(i+1, …, j-1)⟩ · Δa_q[j] · λ⁰_q[j]

and the sum over p is itself the recursion, begun at step i. Nothing is subtracted but a⁰.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens.nn import FCN, FCNLS2T, LS2T, ResNet
from seq2tens.ops import Chains, make_chains

Singles = Float[Tensor, " time"]
Pairs = Float[Tensor, "time time"]
Factors = Float[Tensor, "states time width"]


def step_contributions(
    network: nn.Module,
    contrast: Float[Tensor, " classes"],
    pair: Float[Tensor, "2 time channels"],
) -> tuple[Singles, Pairs]:
    """What each step, and each pair i < j of steps, of the first sequence adds, against the second.

    The output is the combination `contrast` of the network's logits. Pairs are 0 on and below the diagonal.
    """
    length = pair.shape[1]
    singles, pairs = pair.new_zeros(length), pair.new_zeros(length, length)
    for read in _readings(network, contrast, pair):
        if not isinstance(read.module, LS2T):
            singles += ((read.sequences[0] - read.sequences[1]) * read.gradient[0]).sum(1)
            continue
        chains = make_chains(read.module.order, read.module.weights, False)
        alone, together = _split(*_factors(read, chains), chains)
        singles, pairs = singles + alone, pairs + together
    return singles, pairs


class _Reading(NamedTuple):
    """A sequence that is read, for both inputs, and the gradient of the output by what is read."""

    module: nn.Module
    sequences: Float[Tensor, "2 time features"]
    gradient: Tensor


def _readings(network: nn.Module, contrast: Tensor, pair: Tensor) -> list[_Reading]:
    """Run the network, cut open at each place where it reads a sequence."""
    sequences: dict[nn.Module, Tensor] = {}
    leaves: dict[nn.Module, Tensor] = {}

    def cut(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
        sequences[module] = (inputs[0] if isinstance(module, LS2T) else output).detach()
        leaves[module] = output.detach().requires_grad_()
        return leaves[module]

    with _hooked(_readers(network), cut):
        output = network(pair) @ contrast
    gradients = torch.autograd.grad(output[0], list(leaves.values()))
    return [_Reading(m, sequences[m], g) for m, g in zip(leaves, gradients, strict=True)]


@contextmanager
def _hooked(modules: list[nn.Module], hook: Callable[..., Tensor]) -> Iterator[None]:
    handles = [module.register_forward_hook(hook) for module in modules]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _readers(network: nn.Module) -> list[nn.Module]:
    """Modules whose output is pooled, and LS2T layers that give the end point."""
    found: list[nn.Module] = []
    for module in network.modules():
        if isinstance(module, LS2T) and not module.return_sequences:
            _check_layer(module)
            found.append(module)
        elif isinstance(module, FCN) and not module.return_sequences:
            found.append(module.convolutions)
        elif isinstance(module, FCNLS2T):
            found.append(module.fcn)
        elif isinstance(module, ResNet):
            found.append(module.blocks[-1])
    check.require(
        len(found) > 0,
        "`model` must hold a network of `seq2tens.nn`, or an LS2T layer without `return_sequences`, "
        f"got {type(network).__name__}",
    )
    return found


def _check_layer(layer: LS2T) -> None:
    has_decay = layer.decay is not None or layer.decay_logit is not None
    extras = {
        "lift_order": layer.lift_order > 1,
        "decay": has_decay,
        "normalize": layer.exponent_logit is not None,
    }
    given = [name for name, present in extras.items() if present]
    check.require(
        not given, f"`model` must end with an LS2T layer without {', '.join(extras)}, got one with {given}"
    )


def _factors(read: _Reading, chains: Chains) -> tuple[Factors, Factors, Float[Tensor, "states width"]]:
    """Factors of both inputs, and the gradient by the end point, for every state of the chains."""
    layer: Any = read.module
    factors = torch.einsum("btd,cdn->bctn", read.sequences, layer.weight)
    if layer.bias is not None:
        factors = factors + layer.bias[:, None]
    first, second = factors[:, list(chains.component)]
    gradient = first.new_zeros(len(chains.component), layer.width)
    gradient[list(chains.output)] = read.gradient[0]
    return first, second, gradient


def _split(
    factors: Factors, baseline: Factors, gradient: Float[Tensor, "states width"], chains: Chains
) -> tuple[Singles, Pairs]:
    """The formulas of this page, for the recursion over any chains."""
    change = factors - baseline
    adjoint = _adjoint(baseline, gradient, chains)
    begun, ended = change * _values_before(baseline, chains), change * adjoint
    singles = (begun * adjoint).sum((0, 2))
    length = factors.shape[1]
    pairs = factors.new_zeros(length, length)
    for i in range(length - 1):
        later = slice(i + 1, None)
        pairs[i, later] = _pairs_from(begun[:, i], factors[:, later], ended[:, later], chains)
    return singles, pairs


def _pairs_from(
    begun: Float[Tensor, "states width"], factors: Factors, ended: Factors, chains: Chains
) -> Float[Tensor, " time"]:
    """The recursion from a step on, ended at each later step."""
    total = factors.new_zeros(factors.shape[1])
    values: list[Tensor] = []  # of each state, when a step begins
    for s, parent in enumerate(chains.parent):
        value = begun[s].expand_as(factors[s])
        if parent >= 0:
            total = total + (values[parent] * ended[s]).sum(1)
            value = value + _exclusive(values[parent] * factors[s])
        values.append(value)
    return total


def _values_before(factors: Factors, chains: Chains) -> Factors:
    """For each state the value of its parent when a step begins."""
    values: list[Tensor] = []
    parents: list[Tensor] = []
    for s, parent in enumerate(chains.parent):
        parents.append(torch.ones_like(factors[s]) if parent < 0 else values[parent])
        values.append(_exclusive(parents[s] * factors[s]))
    return torch.stack(parents)


def _adjoint(factors: Factors, gradient: Float[Tensor, "states width"], chains: Chains) -> Factors:
    """λ of each state: the derivative of the output by its value after a step."""
    found = gradient[:, None].expand_as(factors).clone()
    for s in reversed(range(len(chains.parent))):
        if (parent := chains.parent[s]) >= 0:
            found[parent] += _exclusive((found[s] * factors[s]).flip(0)).flip(0)
    return found


def _exclusive(x: Float[Tensor, "time width"]) -> Float[Tensor, "time width"]:
    """Sums of the steps before each one."""
    return nn.functional.pad(x.cumsum(0)[:-1], (0, 0, 1, 0))
