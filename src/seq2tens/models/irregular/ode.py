"""Solution of autonomous differential equations with a few fixed steps."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

State = Float[Tensor, "batch width"]
Field = Callable[[State], State]


def rk4_step(field: Field, state: State, span: Float[Tensor, "batch 1"] | float) -> State:
    """Take one step of the classical Runge-Kutta method; rows may advance by different spans of time."""
    first = field(state)
    second = field(state + span / 2 * first)
    third = field(state + span / 2 * second)
    fourth = field(state + span * third)
    return state + span / 6 * (first + 2 * second + 2 * third + fourth)


def trajectory(field: Field, state: State, span: float, n_steps: int) -> Float[Tensor, "batch points width"]:
    """Return the solution at 0, span / n_steps, …, span."""
    states = [state]
    for _ in range(n_steps):
        states.append(rk4_step(field, states[-1], span / n_steps))
    return torch.stack(states, dim=1)


def between(
    states: Float[Tensor, "batch points width"], positions: Float[Tensor, "batch time"]
) -> Float[Tensor, "batch time width"]:
    """Interpolate states linearly at positions 0 … points - 1 along the second axis."""
    positions = positions.clamp(0, states.shape[1] - 1)
    left = positions.floor().clamp(max=states.shape[1] - 2)
    index = left.long()[..., None].expand(-1, -1, states.shape[2])
    return torch.lerp(states.gather(1, index), states.gather(1, index + 1), (positions - left)[..., None])


def velocity(width: int, hidden: int) -> nn.Sequential:
    """Return a network for the right-hand side of an equation."""
    return nn.Sequential(nn.Linear(width, hidden), nn.Tanh(), nn.Linear(hidden, width))
