"""What every fused backend shares as an operation of torch: its arguments, and how it is differentiated.

A backend is a pair of custom operations. The forward one takes `Inputs` and returns the levels along time,
the final state, and states kept for the backward one, which returns the first derivatives. Second
derivatives are rare, so autograd takes them through the reference.

The dispatcher and its autograd for custom operations cost as much as a small layer, so where nobody watches
the same functions run without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seq2tens.ops.chains import Chains
from seq2tens.ops.dispatch import is_observed, may_be_differentiated
from seq2tens.ops.ls2t import reference

_INPUTS = (
    "Tensor x, Tensor weight, Tensor? bias, Tensor? coefficients, Tensor? powers, Tensor? mask, "
    "Tensor? state, int[] component, int[] parent, int[] output, bool reverse, bool return_sequences, "
    "bool keep"
)
FORWARD_SCHEMA = f"({_INPUTS}) -> (Tensor, Tensor, Tensor)"
BACKWARD_SCHEMA = (
    f"(Tensor dout, Tensor dfinal, Tensor kept, {_INPUTS}) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)"
)
_TENSORS = 7  # the first inputs, differentiable all but one:
_MASK = 5
_WIDE = (3, 4)  # coefficients and powers are float64 in the kernels


class Inputs(NamedTuple):
    """The arguments of the operation, in the order of its schema."""

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    coefficients: Tensor | None  # None: one coefficient, 1
    powers: Tensor | None  # decay^0, decay^1, …, (order + 1, width), float64
    mask: Tensor | None
    state: Tensor | None  # None: zeros
    component: list[int]
    parent: list[int]
    output: list[int]
    reverse: bool
    return_sequences: bool
    keep: bool  # whether a backward pass may follow

    @property
    def chains(self) -> Chains:
        """The chains as one hashable value."""
        return Chains(tuple(self.component), tuple(self.parent), tuple(self.output))

    @property
    def differentiable(self) -> tuple[Tensor | None, ...]:
        """The tensors that derivatives are taken by, in the order of the backward operation's results."""
        return self.x, self.weight, self.bias, self.coefficients, self.powers, self.state

    def empty_results(self, blocks: int, kept_dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        """Memory for the levels, the final state, and a kept state for each of the blocks of steps."""
        (batch, length, _), width = self.x.shape, self.weight.shape[2]
        states = len(self.component)
        return (
            self.x.new_empty(batch, length if self.return_sequences else 0, len(self.output), width),
            self.x.new_empty(batch, states, width),
            self.x.new_empty(batch, blocks if self.keep else 0, states, width, dtype=kept_dtype),
        )

    def empty_gradients(self) -> tuple[Tensor, ...]:
        """Memory for the derivatives by the differentiable tensors, of size 0 for one that is missing."""
        sizes = [(0,) if tensor is None else tensor.shape for tensor in self.differentiable]
        dtypes = [torch.float64 if i in _WIDE else self.x.dtype for i in range(len(sizes))]
        return tuple(self.x.new_empty(size, dtype=t) for size, t in zip(sizes, dtypes, strict=True))


class Pair(NamedTuple):
    """The two operations of a backend, and the functions that they register."""

    forward: Any
    backward: Any
    compute: Callable[..., tuple[Tensor, Tensor, Tensor]]
    compute_backward: Callable[..., tuple[Tensor, ...]]


def call(
    pair: Pair, tensors: tuple[Tensor | None, ...], chains: Chains, reverse: bool, return_sequences: bool
) -> tuple[Tensor, Tensor]:
    """Run a forward operation on the arguments of `reference.ls2t`."""
    keep = may_be_differentiated(*tensors)
    rest = (*chains, reverse, return_sequences, keep)
    if is_observed(tensors[0]):  # type: ignore[arg-type]
        output, final, _ = pair.forward(*tensors, *rest)
    elif keep:
        output, final = _Unobserved.apply(pair, rest, *tensors)
    else:
        output, final, _ = pair.compute(*tensors, *rest)
    if return_sequences:
        return output, final
    every_state = chains.output == tuple(range(len(chains.component)))
    return (final.clone() if every_state else final[:, list(chains.output)]), final


def register_derivatives(pair: Pair) -> None:
    """Tell autograd how the pair of operations belongs together."""

    def setup(ctx: Any, inputs: tuple, output: tuple) -> None:
        _save(ctx, inputs[:_TENSORS], inputs[_TENSORS:], output[2])
        ctx.mark_non_differentiable(output[2])

    def differentiate(ctx: Any, dout: Tensor, dfinal: Tensor, dkept: Tensor) -> tuple:
        return _gradients(ctx, pair.backward, dout, dfinal)

    pair.forward.register_autograd(differentiate, setup_context=setup)
    pair.backward.register_autograd(_differentiate_twice, setup_context=_setup_twice)


class _Unobserved(torch.autograd.Function):
    """A pair of operations under autograd, without the dispatcher."""

    @staticmethod
    def forward(ctx: Any, pair: Pair, rest: tuple, *tensors: Tensor | None) -> tuple[Tensor, Tensor]:
        results = pair.compute(*tensors, *rest)
        _save(ctx, tensors, rest, results[2])
        ctx.pair = pair
        return results[:2]

    @staticmethod
    def backward(ctx: Any, dout: Tensor, dfinal: Tensor) -> tuple:
        # with a graph of its own the backward pass is to be differentiated again
        unobserved = not torch.is_grad_enabled() and not is_observed(dout)
        compute = ctx.pair.compute_backward if unobserved else ctx.pair.backward
        return None, None, *_gradients(ctx, compute, dout, dfinal)[:_TENSORS]


def _save(ctx: Any, tensors: tuple, rest: tuple, kept: Tensor) -> None:
    ctx.save_for_backward(*tensors, kept)
    ctx.rest = rest


def _gradients(ctx: Any, backward: Any, dout: Tensor, dfinal: Tensor) -> tuple:
    """Derivatives by all arguments of the operation."""
    *tensors, kept = ctx.saved_tensors
    gradients = list(backward(dout, dfinal, kept, *tensors, *ctx.rest))
    gradients.insert(_MASK, None)
    wanted = (
        None if t is None or g is None else g.to(t.dtype) for t, g in zip(tensors, gradients, strict=True)
    )
    return (*wanted, *[None] * len(ctx.rest))


def _setup_twice(ctx: Any, inputs: tuple, output: tuple) -> None:
    dout, dfinal, _, *rest = inputs
    ctx.save_for_backward(dout, dfinal, *rest[:_TENSORS])
    ctx.rest = rest[_TENSORS:]


def _differentiate_twice(ctx: Any, *incoming: Tensor) -> tuple:
    with torch.enable_grad():
        saved: list[Any] = [
            None if t is None else t.detach().requires_grad_(t.is_floating_point()) for t in ctx.saved_tensors
        ]
        first = _reference_gradients(Inputs(*saved[2:], *ctx.rest), *saved[:2])
        pairs = [(f, g) for f, g in zip(first, incoming, strict=True) if f is not None and f.requires_grad]
        outputs, cotangents = zip(*pairs, strict=True)
        leaves = [t for t in saved if t is not None and t.requires_grad]
        second = iter(torch.autograd.grad(outputs, leaves, cotangents, allow_unused=True))
    dout, dfinal, *rest = (next(second) if t is not None and t.requires_grad else None for t in saved)
    return dout, dfinal, None, *rest, *[None] * len(ctx.rest)


def _reference_gradients(inputs: Inputs, dout: Tensor, dfinal: Tensor) -> list[Tensor | None]:
    """What a backward operation returns, as a differentiable function."""
    tensors: list[Any] = list(inputs[:_TENSORS])
    run: Any = reference.ls2t
    out, final = run(*tensors, inputs.chains, inputs.reverse, inputs.return_sequences)
    values, cotangents = ([out, final], [dout, dfinal]) if inputs.return_sequences else ([final], [dfinal])
    candidates = inputs.differentiable
    leaves = [t for t in candidates if t is not None]
    found = iter(torch.autograd.grad(values, leaves, cotangents, create_graph=True, allow_unused=True))
    return [None if t is None else next(found) for t in candidates]
