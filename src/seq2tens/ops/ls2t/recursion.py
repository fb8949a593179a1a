"""The arguments of the recursion in one named tuple, passed from the caller down to the kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from seq2tens.ops.chains import Chains

TENSORS = 7  # number of leading fields that are tensors; all but the mask are differentiable
MASK = 5
_WIDE = (3, 4)  # gradients of the coefficients and the powers are float64
Gradients = tuple[Tensor | None, ...]

# Most products that a forward pass keeps, 64 MiB in float32, so that long sequences fit into memory.
MOST_PRODUCTS = 2**24


class Saved(NamedTuple):
    """Tensors that the forward pass saves for the backward pass; None if they are not saved."""

    checkpoints: Tensor | None
    products: Tensor | None


class Results(NamedTuple):
    """Results of a forward pass: levels along time, final state, and what it saves."""

    output: Tensor
    final: Tensor
    saved: Saved


class Recursion(NamedTuple):
    """Arguments of one run of the recursion: sequences, parameters and options."""

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    coefficients: Tensor | None  # None: one coefficient, 1
    powers: Tensor | None  # decay^0, decay^1, …, (order + 1, width), float64
    mask: Tensor | None
    state: Tensor | None  # None: zeros
    chains: Chains
    reverse: bool
    return_sequences: bool
    keep: bool = False  # whether a backward pass may follow

    @classmethod
    def of(cls, arguments: tuple[Any, ...]) -> Recursion:
        """Build it from the arguments of a custom operation, which may only be tensors, numbers and lists."""
        chains = Chains(*(tuple(each) for each in arguments[TENSORS : TENSORS + 3]))
        fields: tuple[Any, ...] = (*arguments[:TENSORS], chains, *arguments[TENSORS + 3 :])
        return cls(*fields)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments of the custom operation; the inverse of `of`."""
        return *self.tensors, *self.chains, self.reverse, self.return_sequences, self.keep

    @property
    def tensors(self) -> tuple[Tensor | None, ...]:
        """The leading fields, which are tensors or None."""
        return self.x, self.weight, self.bias, self.coefficients, self.powers, self.mask, self.state

    @property
    def differentiable(self) -> tuple[Tensor | None, ...]:
        """The tensors that have gradients, in the order of the results of the backward operation."""
        return self.x, self.weight, self.bias, self.coefficients, self.powers, self.state

    def empty_results(self, blocks: int, saved_dtype: torch.dtype, keeps_products: bool = False) -> Results:
        """Allocate the levels, the final state, a checkpoint for each block of steps, and the products."""
        x, (components, _, width) = self.x, self.weight.shape
        batch, length, _ = x.shape
        states, steps = len(self.chains.component), length if self.return_sequences else 0
        checkpoints = products = None
        if self.keep:
            checkpoints = x.new_empty(batch, blocks, states, width, dtype=saved_dtype)
            size = batch * length * components * width
            products = x.new_empty(size) if keeps_products and size <= MOST_PRODUCTS else None
        output = x.new_empty(batch, steps, len(self.chains.output), width)
        return Results(output, x.new_empty(batch, states, width), Saved(checkpoints, products))

    def empty_gradients(self) -> Gradients:
        """Allocate the gradients of the differentiable tensors; None where a tensor is missing."""
        return tuple(
            None if t is None else t.new_empty(t.shape, dtype=torch.float64 if i in _WIDE else t.dtype)
            for i, t in enumerate(self.differentiable)
        )
