"""Latent ODE: a sequence is represented by the initial value of a latent differential equation."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from typing_extensions import Unpack

from seq2tens import _checks as check
from seq2tens.data import Batch
from seq2tens.models.irregular.network import IrregularNetwork, Shared, StaticState
from seq2tens.models.irregular.ode import between, rk4_step, trajectory, velocity
from seq2tens.models.irregular.readings import Readings

Latent = Float[Tensor, "batch latent"]


class BackwardEncoder(nn.Module):
    """A recurrent network that reads a sequence backwards to time 0; an ODE moves its state between steps.

    The equation is autonomous, so every row takes one step over its own gap. The cost is that of a recurrent
    network with as many steps as the longest sequence, even if the times of the rows differ.
    """

    def __init__(self, n_channels: int, n_static: int, width: int, hidden: int) -> None:
        super().__init__()
        self.initial = StaticState(n_static, width)
        self.field = velocity(width, hidden)
        self.cell = nn.GRUCell(2 * n_channels, width)

    def forward(self, readings: Readings, horizon: float) -> Float[Tensor, "batch width"]:
        """Return the state at time 0."""
        updated = (readings.inside & readings.observed.any(-1))[..., None].unbind(1)
        inputs = torch.cat([readings.values, readings.mask], dim=-1).unbind(1)
        earlier = readings.times.diff(dim=1, prepend=torch.zeros_like(readings.times[:, :1]))
        spans = (torch.where(readings.inside, earlier, 0.0) / horizon)[..., None].unbind(1)
        state = self.initial(readings.static)
        for x, update, span in zip(reversed(inputs), reversed(updated), reversed(spans), strict=True):
            state = torch.where(update, self.cell(x, state), state)
            state = rk4_step(self.field, state, -span)
        return state


class LatentODE(IrregularNetwork):
    """An encoder of the initial value of a latent differential equation, from which the class is predicted.

    Rubanova, Chen and Duvenaud, "Latent ordinary differential equations for irregularly-sampled time series"
    (2019). The initial value has a Gaussian posterior; its mean is classified, or in training a draw. The
    negative evidence lower bound of the decoded trajectory is `auxiliary_loss`. The trajectory is solved on
    an even grid for all rows together, and interpolated linearly.

    Args:
        latent: size of the initial value.
        hidden: hidden width of the vector fields and of the classifier.
        n_grid: number of steps of the decoder.
        auxiliary_weight: weight of the evidence lower bound per observation.

    The other arguments are those of every `IrregularNetwork`; `width` is that of the encoder's state. Static
    features determine that state initially, and are also concatenated to the initial value.
    """

    def __init__(
        self,
        n_channels: int,
        n_static: int = 0,
        n_classes: int = 2,
        *,
        latent: int = 32,
        hidden: int = 64,
        n_grid: int = 24,
        auxiliary_weight: float = 1.0,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(n_channels, n_static, n_classes, features=hidden, **shared)
        check.positive_int("n_grid", n_grid)
        self.n_grid, self.auxiliary_weight = n_grid, auxiliary_weight
        self.encoder = BackwardEncoder(n_channels, n_static, self.width, hidden)
        self.posterior = nn.Linear(self.width, 2 * latent)
        self.classifier = nn.Sequential(nn.Linear(latent + n_static, hidden), nn.ReLU())
        self.field = velocity(latent, hidden)
        self.decoder = nn.Linear(latent, n_channels)
        self.log_noise = nn.Parameter(torch.zeros(n_channels))

    def summarize(self, readings: Readings) -> Float[Tensor, "batch hidden"]:
        """Return features of the initial value and the static features."""
        mean, log_scale = self.encode(readings)
        start = draw(mean, log_scale) if self.training else mean
        return self.classifier(torch.cat([start, readings.static], dim=-1))

    def encode(self, readings: Readings) -> tuple[Latent, Latent]:
        """Return mean and log-scale of the posterior of the initial value."""
        mean, log_scale = self.posterior(self.encoder(readings, self.horizon)).chunk(2, dim=-1)
        return mean, log_scale

    def decode(
        self, start: Latent, times: Float[Tensor, "batch time"]
    ) -> Float[Tensor, "batch time channels"]:
        """Return the mean of every channel at the given times."""
        states = trajectory(self.field, start, 1.0, self.n_grid)
        return self.decoder(between(states, times * (self.n_grid / self.horizon)))

    def auxiliary_loss(self, batch: Batch) -> Float[Tensor, ""]:
        """Return the negative evidence lower bound per observation, times its weight."""
        readings = self.read(batch)
        mean, log_scale = self.encode(readings)
        decoded = self.decode(draw(mean, log_scale), readings.times)
        errors = (readings.values - decoded) * torch.exp(-self.log_noise)
        surprise = 0.5 * errors**2 + self.log_noise + 0.5 * math.log(2 * math.pi)
        surprise = torch.where(readings.observed, surprise, 0.0).sum()
        bound = surprise + divergence(mean, log_scale).sum()
        return self.auxiliary_weight * bound / readings.observed.sum().clamp(min=1)


def draw(mean: Latent, log_scale: Latent) -> Latent:
    """Draw from the posterior by reparametrisation, so that gradients pass."""
    return mean + log_scale.exp() * torch.randn_like(mean)


def divergence(mean: Latent, log_scale: Latent) -> Float[Tensor, " batch"]:
    """Return the Kullback-Leibler divergence of the posterior from the standard normal, in nats."""
    return 0.5 * (mean**2 + torch.exp(2 * log_scale) - 1 - 2 * log_scale).sum(-1)
