"""Layers that encoders and decoders are made of, started as in Keras."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens import functional as F
from seq2tens.nn import BiLS2T

Path = Float[Tensor, "batch time channels"]
Mask = Bool[Tensor, "batch time"]


def dense_layers(in_features: int, sizes: Sequence[int], out_features: int) -> nn.Sequential:
    """Layers for the last axis with a ReLU after all but the last one."""
    widths = [in_features, *sizes, out_features]
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [started(nn.Linear(before, after)), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def started(layer: nn.Linear | nn.Conv2d) -> nn.Module:
    """The layer with weights uniform after Glorot and a bias of 0."""
    nn.init.xavier_uniform_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


class ImagePreprocessor(nn.Module):
    """Two convolutions of each step seen as an image, flat with the colours last; its size stays."""

    def __init__(self, image_shape: tuple[int, int, int], width: int = 256) -> None:
        super().__init__()
        self.image_shape = image_shape
        colours = image_shape[2]
        first = started(nn.Conv2d(colours, width, 3, padding="same"))
        second = started(nn.Conv2d(width, colours, 3, padding="same"))
        self.layers = nn.Sequential(first, nn.ReLU(), second, nn.ReLU())

    def forward(self, x: Path) -> Path:
        """Apply to all steps at once."""
        images = x.reshape(-1, *self.image_shape).permute(0, 3, 1, 2)
        return self.layers(images).permute(0, 2, 3, 1).reshape(x.shape)


class TimeNorm(nn.Module):
    """Layer normalisation over time: each channel of a sequence by its mean and variance over the steps that
    count, then a learned scale and shift per channel. Steps that do not count become 0.
    """

    def __init__(self, features: int, eps: float = 1e-3) -> None:
        super().__init__()
        check.positive_int("features", features)
        self.eps = eps
        self.weight, self.bias = nn.Parameter(torch.ones(features)), nn.Parameter(torch.zeros(features))

    def forward(self, x: Path, mask: Mask | None = None) -> Path:
        """Normalise; a single step gives the shift."""
        inside = x.new_ones(x.shape[:2], dtype=torch.bool)[..., None] if mask is None else mask[..., None]
        count = inside.sum(1, keepdim=True).clamp(min=1)
        centred = torch.where(inside, x - torch.where(inside, x, 0.0).sum(1, keepdim=True) / count, 0.0)
        variance = centred.square().sum(1, keepdim=True) / count
        y = centred * (variance + self.eps).rsqrt() * self.weight + self.bias
        return torch.where(inside, y, 0.0)


class BiLS2TBlock(nn.Module):
    """Time, difference, BiLS2T, normalisation over time, flatten: `2 · order · width` channels."""

    def __init__(self, in_features: int, width: int, order: int) -> None:
        super().__init__()
        # after differencing the time coordinate is a constant, which makes a bias superfluous
        self.ls2t = BiLS2T(in_features + 1, width, order, weights="independent", bias=False)
        self.out_features = 2 * order * width
        self.norm = TimeNorm(self.out_features)

    def forward(self, x: Path, mask: Mask | None = None) -> Float[Tensor, "batch time features"]:
        """Functionals of the past and of the future of each step."""
        path = F.difference(F.time_embedding(x, mask=mask), mask=mask)
        levels = self.ls2t(path, mask)
        return self.norm(levels.flatten(2), mask)
