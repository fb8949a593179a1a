"""Contexts: where the steps of a sequence are, in one tensor, on several processes, or still to come.

A network is written once, in terms of the operations in which these cases differ, and runs in all of them:

    class Small(Network):
        def compute(self, x, context):
            y = self.convolution(x, context=context).relu()
            return context.mean(self.layer(y, context=context).flatten(2))

`Whole`, for sequences in one tensor, is the definition. The other contexts, `Live` in `nn.streaming` and
`Sharded` in `distributed`, give the same results. In a context the valid steps of a sequence are contiguous.
The values at invalid steps are finite, and the operations of a context do not depend on them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as torch_F
from torch.nn.utils.rnn import PackedSequence

from seq2tens import _checks as check
from seq2tens import functional as F
from seq2tens.nn.alignment import Mask, Series, align, restore
from seq2tens.nn.packed import repack, unpack

if TYPE_CHECKING:
    from seq2tens.nn.layers import LS2T
    from seq2tens.nn.masked import MaskedBatchNorm, MaskedConv
    from seq2tens.nn.streaming import Stream

# Modules that treat every step of a sequence, and every vector, independently.
POINTWISE = (
    nn.Linear, nn.LayerNorm, nn.Flatten, nn.Unflatten, nn.Identity, nn.Dropout, nn.ReLU, nn.LeakyReLU,
    nn.GELU, nn.SiLU, nn.ELU, nn.Tanh, nn.Sigmoid, nn.Softplus,
)  # fmt: skip


class NotInContext(check.ArgumentError):
    """Raised for a module that cannot run in a context."""


class Whole:
    """The context of sequences in one tensor; the valid steps, where `mask` is True, come first.

    `constants` caches what only depends on the parameters of modules; None if these may change. Without
    changes there are no gradients either.
    """

    def __init__(self, mask: Mask | None = None, constants: dict[nn.Module, Any] | None = None) -> None:
        self.mask, self.constants = mask, constants
        self.reductions = 0  # how often a sequence has been reduced to one vector

    def halo(self, x: Series, before: int, after: int) -> Float[Tensor, "batch extended channels"]:
        """Extend the steps by `before` and `after` neighbours; zeros beyond the ends of the sequence."""
        if before + after == 0:
            return x
        # Invalid steps lie beyond the end, so they must be 0 for kernels that look ahead.
        return torch_F.pad(self.clear(x) if after else x, (0, 0, before, after))

    def difference(self, x: Series, *, reverse: bool = False) -> Series:
        """Subtract from each step the one before it or, with `reverse`, the one after it, 0 beyond the ends.

        Contexts with another `halo` also need another difference, `difference_by_halo`.
        """
        return F.neighbor_difference(self.clear(x) if reverse else x, reverse=reverse)

    def clock(self, x: Series, mode: Literal["index", "centred"]) -> Float[Tensor, "batch time 1"]:
        """Return the relative time of each step in the whole sequence, see `functional.time_embedding`."""
        return F.relative_time(x, self.mask, mode)[..., None]

    def mean(self, x: Series) -> Float[Tensor, "batch channels"]:
        """Return the mean over the valid steps."""
        self.reductions += 1
        return F.masked_mean(x, self.mask)

    def ls2t(self, layer: LS2T, x: Series) -> Float[Tensor, "batch *time order width"]:
        """Run the recursion of a layer and return its levels, at every step or at the end."""
        self.reductions += not layer.return_sequences
        levels = F.ls2t(x, **layer.functionals(), mask=self.mask, return_sequences=layer.return_sequences)
        assert isinstance(levels, Tensor)
        return levels

    def count(self, x: Series, *, reverse: bool = False, at_end: bool = False) -> Int[Tensor, "batch ..."]:
        """Count the valid steps up to each step, or all with `at_end`; with `reverse`, from each step on."""
        ones = torch.ones(x.shape[:2], dtype=torch.long, device=x.device)
        valid = ones if self.mask is None else self.mask.long()
        if at_end:
            return valid.sum(1)
        return valid.flip(1).cumsum(1).flip(1) if reverse else valid.cumsum(1)

    def normalize(self, norm: MaskedBatchNorm, x: Tensor) -> Tensor:
        """Normalise over the valid steps of sequences, or over vectors; invalid steps become 0."""
        has_steps = x.dim() == (4 if norm.levels else 3)
        if self.constants is None:
            return norm.over(x, self.mask if has_steps else None)
        if norm not in self.constants:
            self.constants[norm] = norm.scale_and_shift()
        scale, shift = self.constants[norm]
        y = torch.addcmul(shift, x, scale)
        return self.clear(y) if has_steps else y

    def convolve(
        self, convolution: MaskedConv, x: Series, before: int, after: int, train_bias: bool = True
    ) -> Float[Tensor, "batch positions out_features"]:
        """Convolve the steps with as many neighbours before and after them, see `halo`."""
        weight, bias = convolution.weight, convolution.bias
        if self.constants is None:
            mask = self.mask if after else None
            return F.convolve(x, weight, bias, padding=(before, after), mask=mask, train_bias=train_bias)
        if convolution not in self.constants:
            self.constants[convolution] = F.prepare_convolution(weight, bias)
        y: Tensor = self.constants[convolution](self.halo(x, before, after))
        return y

    def one_step(self) -> Whole:
        """Return the context of vectors seen as sequences of one step, which are whole in any context."""
        return Whole(constants=self.constants)

    def dropout(self, x: Tensor, rate: float, training: bool) -> Tensor:
        """Drop whole channels of sequences, or single entries of vectors."""
        if rate == 0 or not training:
            return x
        if x.dim() == 2:
            return torch_F.dropout(x, rate, training)
        return torch_F.dropout1d(x.mT, rate, training).mT

    def clear(self, x: Tensor) -> Tensor:
        """Set invalid steps to 0."""
        return x if self.mask is None else x * self.mask.view(*self.mask.shape, *[1] * (x.dim() - 2))


def difference_by_halo(context: Whole, x: Series, *, reverse: bool = False) -> Series:
    """Compute the same as `Whole.difference`, wherever the neighbours are."""
    return x - (context.halo(x, 0, 1)[:, 1:] if reverse else context.halo(x, 1, 0)[:, :-1])


class Streamable:
    """Mixin that adds the method `stream`; list it before `torch.nn.Module` among the bases."""

    def stream(self, *, length: int | None = None) -> Stream:
        """Open a stream that returns, after each step, the output of the module for the steps so far."""
        from seq2tens.nn.streaming import Stream

        return Stream(self, length=length)  # type: ignore[arg-type]


class Network(Streamable, nn.Module):
    """Base class of modules that are written in terms of a context, in the method `compute(x, context)`.

    `forward` aligns the sequences before `compute`, and restores the positions of the steps afterwards.
    """

    in_features: int | None = None  # channels of the input; None allows any number

    def compute(self, x: Series, context: Whole) -> Tensor:
        """Map sequences to sequences, or to one vector per sequence."""
        raise NotImplementedError

    def forward(
        self,
        x: Float[Tensor, "batch time in_features"] | PackedSequence,
        mask: Mask | None = None,
        lengths: check.Lengths | None = None,
        *,
        context: Whole | None = None,
    ) -> Tensor | PackedSequence:
        """Apply the network; invalid steps are left out, wherever they are.

        Inside a `context`, `mask` and `lengths` must be None, because the context knows the valid steps. For
        a `PackedSequence`, a network that returns sequences returns a `PackedSequence`.
        """
        packed = x if isinstance(x, PackedSequence) else None
        if packed is not None:
            x, lengths = unpack(packed, mask, lengths)
        assert not isinstance(x, PackedSequence)
        check.sequences("x", x)
        if self.in_features is not None and x.shape[2] != self.in_features:
            rule = f"`x` must have {self.in_features} channels (in_features)"
            raise check.ArgumentError(f"{rule}, got {x.shape[2]}")
        if context is not None:
            check.require(
                mask is None and lengths is None, "`mask` and `lengths` must be None in a `context`"
            )
            return self.compute(x, context)
        x, mask, source = align(x, mask, lengths)
        whole = Whole(mask)
        y = self.compute(x, whole)
        if whole.reductions:
            return y
        y = restore(y, source)
        return y if packed is None else repack(y, packed)


def call_in_context(module: nn.Module, x: Tensor, context: Whole) -> Tensor:
    """Apply a module in a context; `torch.nn.Sequential` and pointwise modules of torch take no context."""
    if type(module).forward is nn.Sequential.forward:
        return _call_in_turn(module, x, context)
    if takes_context(module):
        return module(x, context=context)
    if isinstance(module, POINTWISE):
        return module(x)
    raise NotInContext(
        "`module` must be made of LS2T layers, blocks and networks of seq2tens.nn, modules whose `forward` "
        "takes a `context`, and modules that treat every step independently, in sequence; "
        f"got {type(module).__name__}"
    )


def takes_context(module: nn.Module) -> bool:
    """Whether the `forward` of a module takes a context."""
    names, passes_on = _parameters(type(module).forward)
    return "context" in names or (passes_on and isinstance(module, Streamable))


@lru_cache(maxsize=256)
def _parameters(forward: Callable[..., Any]) -> tuple[frozenset[str], bool]:
    """Return the names of a function's parameters, and whether it takes arbitrary keyword arguments."""
    parameters = inspect.signature(forward).parameters
    return frozenset(parameters), any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _call_in_turn(modules: nn.Module, x: Tensor, context: Whole) -> Tensor:
    before = context.reductions
    for module in modules.children():
        reads_steps = takes_context(module) and not getattr(module, "takes_vectors", False)
        if reads_steps and context.reductions > before:
            raise NotInContext(
                f"`module` must not apply {type(module).__name__} after sequences were reduced to one vector "
                "each; `return_sequences=True` keeps the steps"
            )
        x = call_in_context(module, x, context)
    return x
