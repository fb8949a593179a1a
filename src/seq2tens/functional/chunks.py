"""The algebra of chunks: the effect of a part of a sequence on the state of a layer, as one small object.

For a chain of vectors z_1, …, z_M let T be the unit upper triangular matrix whose entry (p, q) is the value
of z_(p+1) ⊗ … ⊗ z_q on a chunk. Then T of two adjacent chunks is the product of both, and (1, h) after a
chunk is (1, h) before it times T. All values come from one run of the recursion over all subwords of the
chains.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2tens import _checks as check
from seq2tens import ops
from seq2tens.functional.layer import Description, Weights
from seq2tens.ops import subwords
from seq2tens.ops.ls2t import Functionals


class Transfer(NamedTuple):
    """The effect of a chunk on the state of a layer.

    `values` are those of all subwords of the layer's chains, the states of the layer first. `fading` is the
    factor by which the chunk decays level 1 of an earlier state; None without decay. `chains` are those of
    the layer.
    """

    values: Float[Tensor, "batch words width"]
    fading: Float[Tensor, "batch width"] | None
    chains: ops.Chains

    @property
    def matrix(self) -> Float[Tensor, "batch width size size"]:
        """The matrix T, whose rows and columns are the empty word and the layer's states."""
        depth, states = self.chains.depth, len(self.chains.component)
        left = [1 if self.fading is None else self.fading**m for m in depth]
        matrix = self.values.new_zeros(states + 1, states + 1, *self.values[:, 0].shape)
        matrix[0, 0] = 1
        for s in range(states):
            matrix[s + 1, s + 1] = left[s]
            matrix[0, s + 1] = self.values[:, s]
        for s, ancestor, word in subwords.make_subwords(self.chains).splits:
            if s < states:
                matrix[ancestor + 1, s + 1] = left[ancestor] * self.values[:, word]
        return matrix.permute(2, 3, 0, 1)


def transfer(
    x: Float[Tensor, "batch time in_features"],
    weight: Float[Tensor, "components in_features width"],
    bias: Float[Tensor, "components width"] | None = None,
    *,
    order: int,
    weights: Weights = "recursive",
    lift_order: int = 1,
    lift_coefficients: Float[Tensor, " lift_order"] | None = None,
    decay: Float[Tensor, " width"] | None = None,
    mask: Bool[Tensor, "batch time"] | None = None,
    lengths: Int[Tensor, " batch"] | None = None,
    reverse: bool = False,
    backend: ops.Backend | None = None,
) -> Transfer:
    """Return the transfer of a chunk, which may have no steps; the arguments are those of `ls2t`.

    With `reverse` the chunk is processed from its end, as in the layer, so it comes after later chunks.
    """
    description = Description(
        weight, bias, order, weights, lift_order, lift_coefficients, decay, reverse, backend
    )
    functionals = description.functionals(x)
    mask = check.step_mask(x, mask, lengths)
    values = _empty_sum(functionals, x) if x.shape[1] == 0 else _run(functionals, x, mask)
    return Transfer(values, _fading(functionals, x, mask), functionals.chains)


def combine(first: Transfer, second: Transfer) -> Transfer:
    """Return the transfer of two consecutive chunks; a layer processes `first` first."""
    same = first.chains == second.chains
    check.require(same, "`second` must have the chains of `first`, got other ones")
    values = subwords.join(first.values, second.values, second.fading, first.chains)
    if first.fading is None or second.fading is None:
        return second._replace(values=values)
    return second._replace(values=values, fading=first.fading * second.fading)


def apply_transfer(
    state: Float[Tensor, "batch states width"] | None, chunk: Transfer
) -> Float[Tensor, "batch states width"]:
    """Return the state after a chunk, given the one before it; None is the state before all steps."""
    batch, _, width = chunk.values.shape
    states = len(chunk.chains.component)
    if state is None:
        return chunk.values[:, :states]
    check.floating("state", state)
    check.shape("state", state, (batch, states, width), "(batch, states, width)")
    return subwords.join(state, chunk.values, chunk.fading, chunk.chains)


def _run(functionals: Functionals, x: Tensor, mask: Tensor | None) -> Tensor:
    every = functionals._replace(chains=subwords.make_subwords(functionals.chains).chains)
    _, values = every.run(x, mask, return_sequences=False)
    return values


def _empty_sum(functionals: Functionals, x: Tensor) -> Tensor:
    """Return zeros, as a function of the inputs, so that these get gradients."""
    dtype = ops.accumulation_dtype(x, functionals.weight)
    values = torch.einsum("btd,cdn->bcn", x.to(dtype), functionals.weight.to(dtype))
    return values[:, list(subwords.make_subwords(functionals.chains).chains.component)]


def _fading(functionals: Functionals, x: Tensor, mask: Tensor | None) -> Tensor | None:
    """Return the decay to the power of the number of valid steps."""
    if functionals.decay is None:
        return None
    steps = x.new_full((x.shape[0],), x.shape[1], dtype=torch.long) if mask is None else mask.sum(1)
    return functionals.decay.to(ops.accumulation_dtype(x, functionals.weight)) ** steps[:, None]
