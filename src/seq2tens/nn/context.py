"""Where the steps of a sequence are: all in one tensor, on several processes, or still to come.

A network is written once, in verbs in which these cases differ, and runs in all of them:

    class Small(Network):
        def compute(self, x, context):
            y = self.convolution(x, context=context).relu()
            return context.mean(self.layer(y, context=context).flatten(2))

`Whole` is the definition: sequences that lie in one tensor. The other contexts, `Live` of `nn.streaming` and
`Sharded` of `distributed`, give what it gives. In a context the valid steps of a sequence are neighbours;
what stands at the others is finite, and the verbs see to it that nothing depends on it.
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

# Modules that treat every step, and every vector, by itself.
POINTWISE = (
    nn.Linear, nn.LayerNorm, nn.Flatten, nn.Unflatten, nn.Identity, nn.Dropout, nn.ReLU, nn.LeakyReLU,
    nn.GELU, nn.SiLU, nn.ELU, nn.Tanh, nn.Sigmoid, nn.Softplus,
)  # fmt: skip


class NotInContext(check.ArgumentError):
    """A module that cannot run where the steps of its sequences are."""


class Whole:
    """Sequences that lie in one tensor; the valid steps, where `mask` is True, come first.

    `constants` holds what can be computed once of modules that do not change; None if they may.
    """

    def __init__(self, mask: Mask | None = None, constants: dict[nn.Module, Any] | None = None) -> None:
        self.mask, self.constants = mask, constants
        self.reductions = 0  # how often a sequence has been reduced to one vector

    def halo(self, x: Series, before: int, after: int) -> Float[Tensor, "batch extended channels"]:
        """The steps with so many of their neighbours on both sides; zeros beyond the ends of the sequence."""
        if before + after == 0:
            return x
        # What follows the last valid step is beyond the end, and nobody looks at it from behind.
        return torch_F.pad(self.clear(x) if after else x, (0, 0, before, after))

    def clock(self, x: Series, mode: Literal["index", "centred"]) -> Float[Tensor, "batch time 1"]:
        """The time of each step as a share of the whole sequence, see `functional.time_embedding`."""
        return F.time_embedding(x[..., :0], mode=mode, mask=self.mask)

    def mean(self, x: Series) -> Float[Tensor, "batch channels"]:
        """The mean over the valid steps."""
        self.reductions += 1
        return F.masked_mean(x, self.mask)

    def ls2t(self, layer: LS2T, x: Series) -> Float[Tensor, "batch *time order width"]:
        """The recursion of a layer from the first step on: its levels at every step, or at the end."""
        self.reductions += not layer.return_sequences
        levels = F.ls2t(x, **layer.functionals(), mask=self.mask, return_sequences=layer.return_sequences)
        assert isinstance(levels, Tensor)
        return levels

    def count(self, x: Series, *, reverse: bool = False, at_end: bool = False) -> Int[Tensor, "batch ..."]:
        """How many valid steps there are up to each step, or in all; with `reverse`, from each step on."""
        ones = torch.ones(x.shape[:2], dtype=torch.long, device=x.device)
        valid = ones if self.mask is None else self.mask.long()
        if at_end:
            return valid.sum(1)
        return valid.flip(1).cumsum(1).flip(1) if reverse else valid.cumsum(1)

    def normalize(self, norm: MaskedBatchNorm, x: Tensor) -> Tensor:
        """Batch normalisation over the valid steps of sequences, or over vectors; other steps become 0."""
        has_steps = x.dim() == (4 if norm.levels else 3)
        if self.constants is None:
            return norm.over(x, self.mask if has_steps else None)
        if norm not in self.constants:
            self.constants[norm] = norm.scale_and_shift()
        scale, shift = self.constants[norm]
        y = torch.addcmul(shift, x, scale)
        return self.clear(y) if has_steps else y

    def convolve(
        self, convolution: MaskedConv, x: Float[Tensor, "batch extended channels"], train_bias: bool
    ) -> Float[Tensor, "batch time out_features"]:
        """The convolution of steps that have their neighbours around them."""
        return F.convolve(x, convolution.weight, convolution.bias, train_bias)

    def one_step(self) -> Whole:
        """The context of vectors as sequences of one step, which are whole wherever a network runs."""
        return Whole(constants=self.constants)

    def dropout(self, x: Tensor, rate: float, training: bool) -> Tensor:
        """Drop whole channels of sequences, or single ones of vectors."""
        if rate == 0 or not training:
            return x
        if x.dim() == 2:
            return torch_F.dropout(x, rate, training)
        return torch_F.dropout1d(x.mT, rate, training).mT

    def clear(self, x: Tensor) -> Tensor:
        """Zeros where a step is not valid."""
        return x if self.mask is None else x * self.mask.view(*self.mask.shape, *[1] * (x.dim() - 2))


class Streamable:
    """A module with `stream`; to be named before `torch.nn.Module`."""

    def stream(self, *, length: int | None = None) -> Stream:
        """Open a stream that gives, step by step, what the module would give for the steps so far."""
        from seq2tens.nn.streaming import Stream

        return Stream(self, length=length)  # type: ignore[arg-type]


class Network(Streamable, nn.Module):
    """A module whose method `compute(x, context)` is written with the methods of a context.

    `forward` aligns the sequences before `compute`, and restores the positions of the steps afterwards.
    """

    in_features: int | None = None  # channels of the input; None: any

    def compute(self, x: Series, context: Whole) -> Tensor:
        """Sequences, or one vector for each, of sequences."""
        raise NotImplementedError

    def forward(
        self,
        x: Float[Tensor, "batch time in_features"] | PackedSequence,
        mask: Mask | None = None,
        lengths: check.Lengths | None = None,
        *,
        context: Whole | None = None,
    ) -> Tensor | PackedSequence:
        """Steps that are not valid are left out, wherever they stand; with a `context`, it knows them.

        A `PackedSequence` is taken, and returned where steps are left.
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


def call(module: nn.Module, x: Tensor, context: Whole) -> Tensor:
    """The output of a module in a context; `torch.nn.Sequential` and torch's pointwise modules know none."""
    if type(module).forward is nn.Sequential.forward:
        return _call_in_turn(module, x, context)
    if takes_context(module):
        return module(x, context=context)
    if isinstance(module, POINTWISE):
        return module(x)
    raise NotInContext(
        "`module` must be made of LS2T layers, blocks and networks of seq2tens.nn, modules whose `forward` "
        "takes a `context`, and modules that treat every step by itself, in sequence; "
        f"got {type(module).__name__}"
    )


def takes_context(module: nn.Module) -> bool:
    """Whether a module is written for contexts."""
    names, passes_on = _parameters(type(module).forward)
    return "context" in names or (passes_on and isinstance(module, Streamable))


@lru_cache(maxsize=256)
def _parameters(forward: Callable[..., Any]) -> tuple[frozenset[str], bool]:
    """Names of a function's parameters, and whether it takes others too."""
    parameters = inspect.signature(forward).parameters
    return frozenset(parameters), any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _call_in_turn(modules: nn.Module, x: Tensor, context: Whole) -> Tensor:
    before = context.reductions
    for module in modules.children():
        reads_steps = takes_context(module) and not getattr(module, "takes_vectors", False)
        if reads_steps and context.reductions > before:
            raise NotInContext(
                f"`module` must not go on with {type(module).__name__} where one vector per sequence is "
                "left; `return_sequences=True` keeps the steps"
            )
        x = call(module, x, context)
    return x
