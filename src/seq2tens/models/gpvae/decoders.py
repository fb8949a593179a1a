"""Decoders: map a point of a latent path to the distribution of a step of the sequence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens.models.gpvae.layers import dense_layers

Likelihood = Literal["gaussian", "bernoulli"]

Latent = Float[Tensor, "*samples batch time latent"]
Values = Float[Tensor, "*samples batch time channels"]


class Decoder(nn.Module):
    """Dense layers applied to each step; entries are independent of each other given the latent path.

    Args:
        latent: number of latent dimensions.
        n_channels: number of channels of the sequences.
        sizes: widths of the hidden layers; empty for a linear decoder.
        likelihood: `"gaussian"`, or `"bernoulli"` for values of 0 and 1.
        variance: variance of the Gaussian: a number, or `"learn"` for one per channel, initially 1.
    """

    log_variance: Tensor | None

    def __init__(
        self,
        latent: int,
        n_channels: int,
        *,
        sizes: Sequence[int] = (256, 256, 256),
        likelihood: Likelihood = "gaussian",
        variance: float | Literal["learn"] = 1.0,
    ) -> None:
        super().__init__()
        check.choice("likelihood", likelihood, ("gaussian", "bernoulli"))
        known = variance == "learn" if isinstance(variance, str) else 0 < variance < math.inf
        check.require(known, f"`variance` must be a number greater than 0 or 'learn', got {variance!r}")
        self.likelihood, self.variance = likelihood, variance
        self.dense = dense_layers(latent, sizes, n_channels)
        learned = likelihood == "gaussian" and variance == "learn"
        self.log_variance = nn.Parameter(torch.zeros(n_channels)) if learned else None

    def forward(self, path: Latent) -> Values:
        """Return the parameters of the likelihood: means of the Gaussian, or logits of the Bernoulli."""
        return self.dense(path)

    def mean(self, parameters: Values) -> Values:
        """Return the expected values."""
        return parameters.sigmoid() if self.likelihood == "bernoulli" else parameters

    def log_density(self, parameters: Values, values: Float[Tensor, "batch time channels"]) -> Values:
        """Return the log-density of each entry."""
        if self.likelihood == "bernoulli":
            return values * parameters - nn.functional.softplus(parameters)
        log_variance = self._log_variance(parameters)
        squares = (values - parameters).square() * torch.exp(-log_variance)
        return -0.5 * (squares + log_variance + math.log(2 * math.pi))

    def draw(self, parameters: Values, generator: torch.Generator | None = None) -> Values:
        """Draw values at random."""
        if self.likelihood == "bernoulli":
            return torch.bernoulli(parameters.sigmoid(), generator=generator)
        deviation = torch.exp(0.5 * self._log_variance(parameters))
        return torch.normal(parameters, deviation.expand_as(parameters), generator=generator)

    def _log_variance(self, like: Tensor) -> Tensor:
        if self.log_variance is not None:
            return self.log_variance
        return like.new_tensor(math.log(float(self.variance)))
