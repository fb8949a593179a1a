"""LS2T layers with the arguments, shapes and return values of `torch.nn.LSTM`."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from seq2tens import _checks as check
from seq2tens.nn.layers import LS2T, LS2TState
from seq2tens.nn.masked import check_rate
from seq2tens.nn.packed import repack, unpack


class RecurrentState(NamedTuple):
    """The state that a `RecurrentLS2T` returns with its output; a pair, like the state of an LSTM."""

    final: Float[
        Tensor, "layers*directions batch hidden_size"
    ]  # outputs after the last step of each direction
    layers: tuple[LS2TState, ...]  # states of the forward direction of each layer

    def detach(self) -> RecurrentState:
        """Return the state detached from its history, for truncated backpropagation through time."""
        return RecurrentState(self.final.detach(), tuple(state.detach() for state in self.layers))


class RecurrentLS2T(nn.Module):
    """Stacked LS2T layers, a drop-in replacement for `torch.nn.LSTM`.

    Arguments, axes and order of the outputs are those of `torch.nn.LSTM`. The levels of a layer are
    concatenated to its `hidden_size` features, level 1 first. Levels grow with the number of steps, so a
    `torch.nn.LayerNorm` over the functionals normalises each level at every step.

    Args:
        input_size: channels of the input.
        hidden_size: features of the output in each direction; a multiple of `order`, and larger.
        num_layers: number of stacked layers.
        bias: as in `LS2T`.
        batch_first: axes `(batch, time, channels)` instead of `(time, batch, channels)`.
        dropout: rate between layers, in training.
        bidirectional: run each layer in both directions, and concatenate the features of both.
        order: highest level.
        options: further arguments of `LS2T`, such as `decay`.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        order: int = 2,
        **options: Any,
    ) -> None:
        super().__init__()
        sizes = {"input_size": input_size, "hidden_size": hidden_size, "num_layers": num_layers}
        for name, value in {**sizes, "order": order}.items():
            check.positive_int(name, value)
        check.require(
            hidden_size % order == 0 and hidden_size > order,
            f"`hidden_size` must be a multiple of order {order} and larger, got {hidden_size}",
        )
        check_rate("dropout", dropout)
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.batch_first, self.dropout, self.bidirectional = batch_first, dropout, bidirectional
        directions, width = (False, True) if bidirectional else (False,), hidden_size // order
        self.layers, self.norms = nn.ModuleList(), nn.ModuleList()
        for index in range(num_layers):
            size = input_size if index == 0 else hidden_size * len(directions)
            layers = (LS2T(size, width, order, bias=bias, reverse=back, **options) for back in directions)
            self.layers.append(nn.ModuleList(layers))
            self.norms.append(nn.ModuleList(nn.LayerNorm(width) for _ in directions))

    def forward(
        self,
        x: Float[Tensor, "axis1 axis2 input_size"] | PackedSequence,
        state: RecurrentState | None = None,
        *,
        lengths: check.Lengths | None = None,
    ) -> tuple[Tensor | PackedSequence, RecurrentState]:
        """Return the pair (output, state), like `torch.nn.LSTM`; `state` continues an earlier call."""
        packed = x if isinstance(x, PackedSequence) else None
        if packed is not None:
            y, lengths = unpack(packed, None, lengths)
        else:
            check.sequences("x", x)  # type: ignore[arg-type]
            y = x if self.batch_first else x.transpose(0, 1)  # type: ignore[union-attr, assignment]
        self._check_state(state)
        final: list[Tensor] = []
        states: list[LS2TState] = []
        for index in range(self.num_layers):
            if index > 0:
                y = nn.functional.dropout(y, self.dropout, self.training)
            before = None if state is None else state.layers[index]
            y, ends, after = self._layer(index, y, lengths, before)
            final += ends
            states.append(after)
        output = repack(y, packed) if packed is not None else y if self.batch_first else y.transpose(0, 1)
        return output, RecurrentState(torch.stack(final), tuple(states))

    def extra_repr(self) -> str:
        """Return the sizes, as `torch.nn.LSTM` shows them."""
        return f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}"

    def _layer(
        self, index: int, x: Tensor, lengths: check.Lengths | None, state: LS2TState | None
    ) -> tuple[Tensor, list[Tensor], LS2TState]:
        """Return the output of a layer, its end in each direction, and the state of the forward direction."""
        first, *others = self.layers[index].children()
        levels, after = first(x, lengths=lengths, state=state, return_state=True)
        both = [levels, *(layer(x, lengths=lengths) for layer in others)]
        norms = self.norms[index].children()
        outputs = [norm(y).flatten(2) for norm, y in zip(norms, both, strict=True)]
        # padded steps repeat the last output; in reverse, a sequence ends at its first step
        ends = [output[:, step] for output, step in zip(outputs, (-1, 0), strict=False)]
        return torch.cat(outputs, dim=2), ends, after

    def _check_state(self, state: RecurrentState | None) -> None:
        if state is None:
            return
        check.require(
            not self.bidirectional,
            "`state` must be None if `bidirectional`: the future is not known in advance",
        )
        check.require(
            len(state.layers) == self.num_layers,
            f"`state` must have {self.num_layers} layers, got {len(state.layers)}",
        )
