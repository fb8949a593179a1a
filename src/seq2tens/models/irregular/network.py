"""Base class and common layers of the networks."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from typing_extensions import TypedDict

from seq2tens import _checks as check
from seq2tens.data import Batch
from seq2tens.models.irregular.readings import Readings, read


class Shared(TypedDict, total=False):
    """Options of every network, see `IrregularNetwork`."""

    width: int
    dropout: float
    horizon: float


class IrregularNetwork(nn.Module):
    """Base class of the networks: a summary of each sequence, dropout, and a linear layer to the logits.

    The logits of a row depend on that row alone, not on padding or on the other rows of a batch. A network
    with a further loss has a method `auxiliary_loss(batch)`, whose result is added to the classification loss
    in training.

    Args:
        n_channels: number of channels of the sequences.
        n_static: number of static features.
        n_classes: number of classes.
        width: size of the state, or of the hidden layers.
        dropout: dropout rate before the last layer.
        horizon: unit of time, usually the time span of the sequences.
        features: size of the summary, by default the width.
    """

    def __init__(
        self,
        n_channels: int,
        n_static: int = 0,
        n_classes: int = 2,
        *,
        width: int = 64,
        dropout: float = 0.2,
        horizon: float = 48.0,
        features: int | None = None,
    ) -> None:
        super().__init__()
        features = width if features is None else features
        check.positive_int("n_channels", n_channels)
        check.require(n_static >= 0, f"`n_static` must be at least 0, got {n_static}")
        check.positive_int("n_classes", n_classes)
        check.positive_int("width", width)
        check.positive_int("features", features)
        check.require(horizon > 0, f"`horizon` must be positive, got {horizon}")
        self.n_channels, self.n_static, self.n_classes = n_channels, n_static, n_classes
        self.width, self.horizon = width, horizon
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(features, n_classes)

    def forward(self, batch: Batch) -> Float[Tensor, "batch classes"]:
        """Return the logits of the classes."""
        return self.head(self.dropout(self.summarize(self.read(batch))))

    def read(self, batch: Batch) -> Readings:
        """Check a batch and fill in optional fields."""
        return read(batch, self.n_channels, self.n_static)

    def summarize(self, readings: Readings) -> Float[Tensor, "batch features"]:
        """Return the features from which the classes are predicted."""
        raise NotImplementedError


class StaticState(nn.Module):
    """An initial state computed from the static features; without any, one learned vector for all."""

    def __init__(self, n_static: int, width: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(width))
        self.linear = nn.Linear(n_static, width, bias=False) if n_static else None

    def forward(self, static: Float[Tensor, "batch features"]) -> Float[Tensor, "batch width"]:
        """Return one vector per sequence, bounded like the states of recurrent networks."""
        linear = 0.0 if self.linear is None else self.linear(static)
        return torch.tanh(linear + self.bias.expand(len(static), -1))


class TimeEncoding(nn.Module):
    """Sines and cosines of a time, with wavelengths in geometric progression from `shortest` to `longest`."""

    def __init__(self, width: int, shortest: float, longest: float) -> None:
        super().__init__()
        check.require(width > 0 and width % 2 == 0, f"`width` must be even and positive, got {width}")
        self.frequencies: Tensor
        wavelengths = torch.logspace(0, 1, width // 2, base=longest / shortest) * shortest
        self.register_buffer("frequencies", 2 * torch.pi / wavelengths, persistent=False)

    def forward(self, times: Float[Tensor, "*any"]) -> Float[Tensor, "*any width"]:
        """Return the encoding along a new last axis."""
        angles = times[..., None] * self.frequencies
        return torch.cat([angles.sin(), angles.cos()], dim=-1)
