"""What the networks have in common."""

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
    """A summary of each sequence, dropout, and a linear layer to the logits of the classes.

    A row's logits depend on that row alone: neither padding nor the other rows of a batch change them.
    A network that learns from more than labels has a method `auxiliary_loss(batch)`; what it returns is to be
    added to the loss of the labels in training.

    Args:
        n_channels: channels of the sequences.
        n_static: static features.
        n_classes: classes.
        width: size of the state, or of the hidden layers.
        dropout: before the last layer.
        horizon: the unit of time, as a rule the span of the sequences.
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
        """Logits of every class."""
        return self.head(self.dropout(self.summarize(self.read(batch))))

    def read(self, batch: Batch) -> Readings:
        """The batch, checked and completed."""
        return read(batch, self.n_channels, self.n_static)

    def summarize(self, readings: Readings) -> Float[Tensor, "batch features"]:
        """The features from which the classes are told."""
        raise NotImplementedError


class StaticState(nn.Module):
    """The static features as a vector with which a network starts; without any, one vector for all."""

    def __init__(self, n_static: int, width: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(width))
        self.linear = nn.Linear(n_static, width, bias=False) if n_static else None

    def forward(self, static: Float[Tensor, "batch features"]) -> Float[Tensor, "batch width"]:
        """One vector per sequence, bounded like the states of recurrent networks."""
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
        """The encoding along a new last axis."""
        angles = times[..., None] * self.frequencies
        return torch.cat([angles.sin(), angles.cos()], dim=-1)
