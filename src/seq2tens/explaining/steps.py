"""Contributions of single steps and ordered pairs of steps to a network's output.

A network reduces a sequence of vectors either to its mean over time, a sum over steps, or to the end point of
an LS2T layer, a sum of products of the factors a_1[i_1] ··· a_m[i_m] over i_1 < … < i_m. In evaluation mode
everything after that is affine.

Write a = a⁰ + Δa with the factors a⁰ of the baseline, and multiply out. Products in which Δa occurs once, at
step i, belong to step i; those in which it occurs more often belong to the first and the last of these steps.
With the recursion h and its adjoint λ (the gradient of the output), both of the baseline, this gives

    single[i]  = Σ_p h⁰_(p-1)[i-1] · Δa_p[i] · λ⁰_p[i]
    pair[i, j] = Σ_(p<q) h⁰_(p-1)[i-1] · Δa_p[i] · ⟨z_(p+1) ⊗ … ⊗ z_(q-1), Φ(i+1, …, j-1)⟩ · Δa_q[j] · λ⁰_q[j]

and the sum over p is itself the recursion, started at step i. Nothing is subtracted except a⁰.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens.functional import Chains, Series, make_chains
from seq2tens.nn import LS2T, Whole, takes_context

Singles = Float[Tensor, " time"]
Pairs = Float[Tensor, "time time"]
Factors = Float[Tensor, "states time width"]


def step_contributions(
    network: nn.Module,
    contrast: Float[Tensor, " classes"],
    pair: Float[Tensor, "2 time channels"],
) -> tuple[Singles, Pairs]:
    """Return contributions of steps, and of pairs of steps i < j, of the first sequence against the second.

    The output is the combination `contrast` of the network's logits. Pairs are 0 on and below the diagonal.
    """
    length = pair.shape[1]
    singles, pairs = pair.new_zeros(length), pair.new_zeros(length, length)
    for reading, gradient in _readings(network, contrast, pair):
        if reading.layer is None:
            change = reading.sequences[0] - reading.sequences[1]
            singles += (change * gradient[0]).sum(1) / len(change)
            continue
        chains = make_chains(reading.layer.order, reading.layer.weights, False)
        single_terms, pair_terms = _split(
            *_factors(reading.layer, reading.sequences, chains), gradient[0], chains
        )
        singles, pairs = singles + single_terms, pairs + pair_terms
    return singles, pairs


class _Reading(NamedTuple):
    """A sequence that a layer, or a mean if `layer` is None, reduces to a vector, for both inputs."""

    layer: LS2T | None
    sequences: Float[Tensor, "2 time features"]
    output: Tensor


class _Recorder(Whole):
    """A context that records reductions and cuts the graph there: gradients end at their outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.readings: list[_Reading] = []

    def mean(self, x: Series) -> Float[Tensor, "batch channels"]:
        """Return the mean over time, and record it."""
        return self._note(None, x, super().mean(x))

    def ls2t(self, layer: LS2T, x: Series) -> Float[Tensor, "batch *time order width"]:
        """Run the recursion; record it if it returns levels at the end, not at every step."""
        levels = super().ls2t(layer, x)
        if layer.return_sequences:
            return levels
        _check_layer(layer)
        return self._note(layer, x, levels)

    def _note(self, layer: LS2T | None, x: Tensor, y: Tensor) -> Tensor:
        self.readings.append(_Reading(layer, x.detach(), y.detach().requires_grad_()))
        return self.readings[-1].output


def _readings(network: nn.Module, contrast: Tensor, pair: Tensor) -> Iterator[tuple[_Reading, Tensor]]:
    """Yield the reductions in the network, each with the gradient of the output by its result."""
    recorder = _Recorder()
    with _running_in(recorder, network):
        output = network(pair) @ contrast
    check.require(
        len(recorder.readings) > 0,
        "`model` must hold a network of `seq2tens.nn`, or an LS2T layer without `return_sequences`, "
        f"got {type(network).__name__}",
    )
    leaves = [reading.output for reading in recorder.readings]
    gradients = torch.autograd.grad(output[0], leaves, allow_unused=True)
    for reading, gradient in zip(recorder.readings, gradients, strict=True):
        if gradient is not None:
            yield reading, gradient


@contextmanager
def _running_in(context: Whole, network: nn.Module) -> Iterator[None]:
    """Pass this context to all modules of a network that are called without one."""

    def enter(_: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any] | None:
        has_context = any(isinstance(value, Whole) for value in (*args, *options.values()))
        return None if has_context else (args, {**options, "context": context})

    modules = [module for module in network.modules() if takes_context(module)]
    handles = [module.register_forward_pre_hook(enter, with_kwargs=True) for module in modules]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _check_layer(layer: LS2T) -> None:
    has_decay = layer.decay is not None or layer.decay_logit is not None
    extras = {
        "lift_order": layer.lift_order > 1,
        "decay": has_decay,
        "normalize": layer.exponent is not None,
    }
    present = [name for name, is_present in extras.items() if is_present]
    check.require(
        not present,
        f"`model` must end with an LS2T layer without {', '.join(extras)}, got one with {present}",
    )


def _factors(layer: LS2T, sequences: Tensor, chains: Chains) -> tuple[Factors, Factors]:
    """Return the factors of both inputs, for every state of the chains."""
    factors = torch.einsum("btd,cdn->bctn", sequences, layer.weight)
    if layer.bias is not None:
        factors = factors + layer.bias[:, None]
    first, second = factors[:, list(chains.component)]
    return first, second


def _split(
    factors: Factors, baseline: Factors, gradient: Float[Tensor, "order width"], chains: Chains
) -> tuple[Singles, Pairs]:
    """Evaluate the formulas above for any chains; `gradient` is that of the output by the end point."""
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
    """Run the recursion from a step on, and close it at each later step."""
    total = factors.new_zeros(factors.shape[1])
    values: list[Tensor] = []  # value of each state at the beginning of a step
    for s, parent in enumerate(chains.parent):
        value = begun[s].expand_as(factors[s])
        if parent >= 0:
            total = total + (values[parent] * ended[s]).sum(1)
            value = value + _exclusive(values[parent] * factors[s])
        values.append(value)
    return total


def _values_before(factors: Factors, chains: Chains) -> Factors:
    """Return, for each state, the value of its parent at the beginning of a step."""
    values: list[Tensor] = []
    parents: list[Tensor] = []
    for s, parent in enumerate(chains.parent):
        parents.append(torch.ones_like(factors[s]) if parent < 0 else values[parent])
        values.append(_exclusive(parents[s] * factors[s]))
    return torch.stack(parents)


def _adjoint(factors: Factors, gradient: Float[Tensor, "order width"], chains: Chains) -> Factors:
    """Return λ of each state: the derivative of the output by its value after a step."""
    adjoint = torch.zeros_like(factors)
    adjoint[list(chains.output)] = gradient[:, None].expand(-1, factors.shape[1], -1)
    for s in reversed(range(len(chains.parent))):
        if (parent := chains.parent[s]) >= 0:
            adjoint[parent] += _exclusive((adjoint[s] * factors[s]).flip(0)).flip(0)
    return adjoint


def _exclusive(x: Float[Tensor, "time width"]) -> Float[Tensor, "time width"]:
    """Return the exclusive cumulative sum over time."""
    return nn.functional.pad(x.cumsum(0)[:-1], (0, 0, 1, 0))
