"""Gated recurrent networks whose dropout masks are the same at all steps of a sequence."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as torch_F

from seq2tens import _checks as check

State = Float[Tensor, "batch width"]
Rows = Float[Tensor, "batch time features"]


class DropoutGRU(nn.GRU):
    """A layer of gated recurrent units, as in Keras: masks are drawn once for each sequence.

    Args:
        in_features: number of features of a step.
        width: size of the state.
        input_dropout: fraction of the features that is dropped at all steps of a sequence.
        recurrent_dropout: fraction of the state that is hidden from the gates at all steps of a sequence; the
            state itself is carried on unchanged.
    """

    def __init__(
        self, in_features: int, width: int, input_dropout: float = 0.0, recurrent_dropout: float = 0.0
    ) -> None:
        super().__init__(in_features, width, batch_first=True)
        for name, rate in (("input_dropout", input_dropout), ("recurrent_dropout", recurrent_dropout)):
            check.require(0 <= rate < 1, f"`{name}` must lie in [0, 1), got {rate}")
        self.input_dropout, self.recurrent_dropout = input_dropout, recurrent_dropout

    def forward(self, rows: Rows, initial: State) -> Float[Tensor, "batch time width"]:  # type: ignore[override]
        """Return the states after each step."""
        if self.training and self.input_dropout:
            rows = rows * mask_like(rows[:, :1], self.input_dropout)
        if self.training and self.recurrent_dropout:
            return self.masked(rows, initial, mask_like(initial, self.recurrent_dropout))
        return super().forward(rows, initial[None])[0]

    def masked(self, rows: Rows, state: State, visible: State) -> Float[Tensor, "batch time width"]:
        """Return the states after each step if the gates see the state times `visible`."""
        states = []
        weight, gate_weight, bias, gate_bias = self.all_weights[0]
        for projected in torch_F.linear(rows, weight, bias).unbind(1):
            state = gru_step(projected, state, visible * state, (gate_weight, gate_bias))
            states.append(state)
        return torch.stack(states, dim=1)


def gru_step(
    projected: Float[Tensor, "batch three_widths"], state: State, visible: State, gates: tuple[Any, Any]
) -> State:
    """Return the next state, from the projected input and the part of the state that the gates see."""
    reset, update, new = projected.chunk(3, dim=-1)
    state_reset, state_update, state_new = torch_F.linear(visible, *gates).chunk(3, dim=-1)
    candidate = torch.tanh(new + torch.sigmoid(reset + state_reset) * state_new)
    return torch.lerp(candidate, state, torch.sigmoid(update + state_update))


def mask_like(x: Tensor, rate: float) -> Tensor:
    """Draw a dropout mask: zeros at this rate, and elsewhere the factor that preserves the mean."""
    return torch_F.dropout(torch.ones_like(x), rate)
