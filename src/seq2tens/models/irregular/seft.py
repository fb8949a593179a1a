"""Set functions for time series: a sequence is treated as an unordered set of observations."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from typing_extensions import Unpack

from seq2tens import _checks as check
from seq2tens.models.irregular.network import IrregularNetwork, Shared, TimeEncoding
from seq2tens.models.irregular.readings import Observations, Readings
from seq2tens.models.irregular.segments import segment_mean, segment_softmax, segment_sum

Elements = Float[Tensor, "observations features"]
Owners = Int[Tensor, " observations"]


class SetAttention(nn.Module):
    """Weights of the elements of a set, one per head, that sum to 1 over the set.

    The key of an element is a linear function of the element and of a summary of its set, a linear layer on
    the mean of a small network. Each head has one learned query, initially 0: attention starts as a mean.
    """

    def __init__(self, n_features: int, width: int, heads: int) -> None:
        super().__init__()
        self.elements = _layers(n_features, width, width)
        self.summary = nn.Linear(width, width)
        self.keys = nn.Linear(n_features + width, heads * width, bias=False)
        self.query = nn.Parameter(torch.zeros(heads, width))

    def forward(self, elements: Elements, owners: Owners, n_sets: int) -> Float[Tensor, "observations heads"]:
        """Return the weights of the elements of all sets."""
        summary = self.summary(segment_mean(self.elements(elements), owners, n_sets))
        keys = self.keys(torch.cat([elements, summary[owners]], dim=-1)).unflatten(-1, self.query.shape)
        logits = (keys * self.query).sum(-1) / math.sqrt(self.query.shape[1])
        return segment_softmax(logits, owners, n_sets)


class SeFT(IrregularNetwork):
    """A network applied to each observation (time, value, channel), averaged with attention over a sequence.

    SeFT-Attn of Horn et al., "Set functions for time series" (2020). Static features are concatenated to the
    average, before the classifying network.

    PyPOTS has a model of this name that uses step numbers instead of times, and attends from every entry of a
    grid to every other, which is infeasible with thousands of entries per sequence.

    Args:
        heads: number of attention heads.
        time_width: size of the encoding of times, even.
        channel_width: size of the learned embedding of each channel.

    The other arguments are those of every `IrregularNetwork`; encodings have wavelengths from a 500th of the
    `horizon` to four times it.
    """

    def __init__(
        self,
        n_channels: int,
        n_static: int = 0,
        n_classes: int = 2,
        *,
        heads: int = 4,
        time_width: int = 16,
        channel_width: int = 16,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(n_channels, n_static, n_classes, **shared)
        check.positive_int("heads", heads)
        n_features = time_width + 1 + channel_width
        self.encoding = TimeEncoding(time_width, self.horizon / 500, 4 * self.horizon)
        self.channels = nn.Embedding(n_channels, channel_width)
        self.elements = _layers(n_features, self.width, self.width)
        self.attention = SetAttention(n_features, self.width // 2, heads)
        self.joined = _layers(heads * self.width + n_static, self.width, self.width)

    def summarize(self, readings: Readings) -> Float[Tensor, "batch width"]:
        """Apply a network to the averages of all heads and the static features."""
        observations, n_sets = readings.observations(), len(readings.values)
        elements = self.describe(observations)
        weights = self.attention(elements, observations.rows, n_sets)
        weighted = weights[:, :, None] * self.elements(elements)[:, None]
        averages = segment_sum(weighted.flatten(1), observations.rows, n_sets)
        return self.joined(torch.cat([averages, readings.static], dim=-1))

    def describe(self, observations: Observations) -> Elements:
        """Encode time, value and channel of each observation as one vector."""
        return torch.cat(
            [
                self.encoding(observations.times),
                observations.values[:, None],
                self.channels(observations.channels),
            ],
            dim=-1,
        )


def _layers(n_inputs: int, width: int, n_outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(n_inputs, width), nn.ReLU(), nn.Linear(width, n_outputs), nn.ReLU())
