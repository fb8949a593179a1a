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
from torch.utils._python_dispatch import _get_current_dispatch_mode

from seq2tens.ops import reference
from seq2tens.ops.chains import Chains

_INPUTS = (
    "Tensor x, Tensor weight, Tensor? bias, Tensor coefficients, Tensor? powers, Tensor? mask, Tensor state, "
    "int[] component, int[] parent, int[] output, bool reverse, bool return_sequences, bool keep"
)
FORWARD_SCHEMA = f"({_INPUTS}) -> (Tensor, Tensor, Tensor)"
BACKWARD_SCHEMA = (
    f"(Tensor dout, Tensor dfinal, Tensor kept, Tensor? levels, bool by_coefficients, {_INPUTS}) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)"
)
_TENSORS = 7  # the first inputs, differentiable all but one:
_MASK = 5
_PLAIN = (Tensor, torch.nn.Parameter)


class Inputs(NamedTuple):
    """The arguments of the operation, in the order of its schema."""

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    coefficients: Tensor
    powers: Tensor | None  # decay^0, decay^1, …, (order + 1, width)
    mask: Tensor | None
    state: Tensor
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

    def empty_results(
        self, blocks: int, kept_dtype: torch.dtype, new: Any = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Memory for the levels, the final state, and a kept state for each of the blocks of steps.

        The levels come from `new(shape, dtype)` where it is given.
        """
        (batch, length, _), width = self.x.shape, self.weight.shape[2]
        states = len(self.component)
        shape = (batch, length if self.return_sequences else 0, len(self.output), width)
        return (
            self.x.new_empty(shape) if new is None else new(shape, self.x.dtype),
            self.x.new_empty(batch, states, width),
            self.x.new_empty(batch, blocks if self.keep else 0, states, width, dtype=kept_dtype),
        )

    def empty_gradients(self) -> tuple[Tensor, ...]:
        """Memory for the derivatives by x, weight, bias, coefficients, powers and state."""
        components, _, width = self.weight.shape
        return (
            self.x.new_empty(self.x.shape),
            self.x.new_empty(self.weight.shape),
            self.x.new_empty(components, width),
            self.x.new_empty(len(self.coefficients)),
            self.x.new_empty(max(self.chains.depth) + 1, width),
            self.x.new_empty(self.state.shape),
        )


def is_unobserved(x: Tensor) -> bool:
    """Whether nobody traces or intercepts operations, so that one may be called without the dispatcher."""
    return not torch.compiler.is_compiling() and type(x) in _PLAIN and _get_current_dispatch_mode() is None


class Pair(NamedTuple):
    """The two operations of a backend, and the functions that they register."""

    forward: Any
    backward: Any
    compute: Callable[..., tuple[Tensor, Tensor, Tensor]]
    compute_backward: Callable[..., tuple[Tensor, ...]]
    reads_levels: Callable[[Inputs], bool]  # whether the backward one wants the levels along time


def call(
    pair: Pair, tensors: tuple[Tensor | None, ...], chains: Chains, reverse: bool, return_sequences: bool
) -> tuple[Tensor, Tensor]:
    """Run a forward operation on the arguments of `reference.ls2t`."""
    keep = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)
    rest = (*chains, reverse, return_sequences, keep)
    if not is_unobserved(tensors[0]):  # type: ignore[arg-type]
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
        _save(ctx, pair, inputs[:_TENSORS], inputs[_TENSORS:], output)
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
        _save(ctx, pair, tensors, rest, results)
        ctx.pair = pair
        return results[:2]

    @staticmethod
    def backward(ctx: Any, dout: Tensor, dfinal: Tensor) -> tuple:
        # with a graph of its own the backward pass is to be differentiated again
        unobserved = not torch.is_grad_enabled() and is_unobserved(dout)
        compute = ctx.pair.compute_backward if unobserved else ctx.pair.backward
        return None, None, *_gradients(ctx, compute, dout, dfinal, before=2)[:_TENSORS]


def _save(ctx: Any, pair: Pair, tensors: tuple, rest: tuple, results: tuple) -> None:
    output, _, kept = results
    levels = output if pair.reads_levels(Inputs(*tensors, *rest)) else None
    ctx.save_for_backward(*tensors, kept, levels)
    ctx.rest = rest


def _gradients(ctx: Any, backward: Any, dout: Tensor, dfinal: Tensor, before: int = 0) -> tuple:
    """Derivatives by all arguments; `before` of them stand before the operation's own."""
    *tensors, kept, levels = ctx.saved_tensors
    by_coefficients = ctx.needs_input_grad[before + 3]
    found = backward(dout, dfinal, kept, levels, by_coefficients, *tensors, *ctx.rest)
    gradients = [*found[:_MASK], None, found[_MASK]]
    gradients[3] = found[3] if by_coefficients else None
    return (
        *(None if t is None else g for t, g in zip(tensors, gradients, strict=True)),
        *[None] * len(ctx.rest),
    )


def _setup_twice(ctx: Any, inputs: tuple, output: tuple) -> None:
    dout, dfinal, _, _, _, *rest = inputs
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
    return dout, dfinal, None, None, None, *rest, *[None] * len(ctx.rest)


def _reference_gradients(inputs: Inputs, dout: Tensor, dfinal: Tensor) -> list[Tensor | None]:
    """What a backward operation returns, as a differentiable function."""
    tensors: list[Any] = list(inputs[:_TENSORS])
    run: Any = reference.ls2t
    out, final = run(*tensors, inputs.chains, inputs.reverse, inputs.return_sequences)
    values, cotangents = ([out, final], [dout, dfinal]) if inputs.return_sequences else ([final], [dfinal])
    candidates = [t for i, t in enumerate(tensors) if i != _MASK]
    leaves = [t for t in candidates if t is not None]
    found = iter(torch.autograd.grad(values, leaves, cotangents, create_graph=True, allow_unused=True))
    return [None if t is None else next(found) for t in candidates]
