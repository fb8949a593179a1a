"""Layers of the encoders and decoders, initialised as in Keras."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens import functional as F
from seq2tens.models.gpvae.images import convolved_twice, fold_patches
from seq2tens.nn import BiLS2T, Dense

Values = Float[Tensor, "batch time channels"]
Mask = Bool[Tensor, "batch time"]


# Added to the variance of a level.
OUR_EPS, PUBLISHED_EPS = 1e-8, 1e-3


def dense_layers(in_features: int, sizes: Sequence[int], out_features: int) -> nn.Sequential:
    """Return dense layers on the last axis, with a ReLU after all but the last one."""
    widths = [in_features, *sizes, out_features]
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [glorot_initialized(Dense(before, after)), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)


def glorot_initialized(layer: Layer) -> Layer:
    """Initialise the layer with Glorot uniform weights and a bias of 0, and return it."""
    nn.init.xavier_uniform_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


class ImagePreprocessor(nn.Module):
    """Two convolutions of each step as an image, flattened with the colours last; they preserve its size.

    With `last_relu` there is a ReLU after the second one as well, as published. That convolution has only as
    many filters as there are colours, and with a ReLU all of them can become 0 for good after a few dozen
    training steps, which leaves the encoder without input; hence there is none by default.

    A black and white image has at most 512 different neighbourhoods of 3 x 3 pixels. Hence its first
    convolution takes at most 512 different values, and what each of them adds to the second one is looked up
    in a table: the same numbers up to rounding, about thirty times as fast. Other images are convolved only
    where the neighbourhood of a pixel is not all zeros, see `images`.
    """

    def __init__(
        self, image_shape: tuple[int, int, int], width: int = 256, *, last_relu: bool = False
    ) -> None:
        super().__init__()
        self.image_shape, self.last_relu = image_shape, last_relu
        colors = image_shape[2]
        self.first = glorot_initialized(nn.Conv2d(colors, width, 3, padding="same"))
        self.second = glorot_initialized(nn.Conv2d(width, colors, 3, padding="same"))

    def forward(self, x: Values) -> Values:
        """Apply the convolutions to all steps at once."""
        filtered = self._convolved(x)
        return filtered.relu() if self.last_relu else filtered

    def _convolved(self, x: Values) -> Values:
        images = x.reshape(-1, *self.image_shape).permute(0, 3, 1, 2)
        if images.shape[1] == 1 and not x.requires_grad and bool(((x == 0) | (x == 1)).all()):
            return self._black_and_white(images[:, 0]).view(x.shape)
        return self._colored(images).permute(0, 2, 3, 1).reshape(x.shape)

    def _colored(self, images: Float[Tensor, "n colours height width"]) -> Tensor:
        if images.requires_grad or torch.is_autocast_enabled(images.device.type):
            return self.second(self.first(images).relu())
        bias, last_bias = self.first.bias, self.second.bias
        assert bias is not None
        assert last_bias is not None
        y = convolved_twice(images.permute(0, 2, 3, 1), self.first.weight, bias, self.second.weight)
        return (y + last_bias).permute(0, 3, 1, 2)

    def _black_and_white(self, images: Float[Tensor, "n height width"]) -> Tensor:
        codes, table = _neighborhoods(images), self._table(images)
        busy = codes != 0
        y = fold_patches(busy, table.index_select(0, codes[busy]), table[0])
        assert self.second.bias is not None
        return y + self.second.bias

    def _table(self, like: Tensor) -> Float[Tensor, "codes places"]:
        """Return, for each possible neighbourhood, what a pixel adds to those around it."""
        bits = torch.arange(512, device=like.device)[:, None] >> torch.arange(9, device=like.device) & 1
        hidden = nn.functional.linear(bits.to(like.dtype), self.first.weight.flatten(1), self.first.bias)
        return hidden.relu() @ self.second.weight[0].flip(1, 2).flatten(1)


def _neighborhoods(images: Float[Tensor, "n height width"]) -> Int[Tensor, "n height width"]:
    """Encode the 3 x 3 pixels around each pixel as bits of a number, row by row; 0 beyond the edge."""
    padded = nn.functional.pad(images.to(torch.int32), (1, 1, 1, 1))
    rows = padded[:, :, :-2] + 2 * padded[:, :, 1:-1] + 4 * padded[:, :, 2:]
    return rows[:, :-2] + 8 * rows[:, 1:-1] + 64 * rows[:, 2:]


class LevelNorm(nn.Module):
    """Layer normalisation of the levels of an LS2T layer.

    Each level of a sequence is normalised by its mean and variance over the functionals of all valid steps,
    then scaled and shifted by learned parameters. Other steps become 0.

    The paper takes statistics "only across time", where those of its batch normalisation are "across time and
    the batch"; these are pooled over a level's functionals, and so are ours. Subtracting the mean over time
    of each functional separately would remove what is constant in a sequence. As levels have very different
    magnitudes, `eps` is small by default.

    Args:
        order: number of levels.
        width: number of functionals per level.
        eps: number added to variances.
        steps: None for a scale and shift of each functional of each level; otherwise, as published, of each
            functional at each step, shared by all levels, for sequences of at most this many steps.
    """

    def __init__(self, order: int, width: int, eps: float = OUR_EPS, steps: int | None = None) -> None:
        super().__init__()
        check.positive_int("order", order)
        check.positive_int("width", width)
        self.eps, self.steps = eps, steps
        shape = (order, width) if steps is None else (steps, 1, width)
        self.weight = nn.Parameter(torch.ones(shape))
        self.bias = nn.Parameter(torch.zeros(shape))

    def forward(
        self, levels: Float[Tensor, "batch time order width"], mask: Mask | None = None
    ) -> Float[Tensor, "batch time order width"]:
        """Normalise the levels."""
        weight, bias = self._scale_and_shift(levels.shape[1])
        if mask is None:
            mask = levels.new_ones(levels.shape[:2], dtype=torch.bool)
        inside = mask[:, :, None, None]
        levels = torch.where(inside, levels, 0.0)
        centered = levels - F.masked_mean(levels.mean(3), mask)[:, None, :, None]
        variance = F.masked_mean(centered.square().mean(3), mask)[:, None, :, None]
        return torch.where(inside, centered * (variance + self.eps).rsqrt() * weight + bias, 0.0)

    def _scale_and_shift(self, time: int) -> tuple[Tensor, Tensor]:
        if self.steps is None:
            return self.weight, self.bias
        check.require(time <= self.steps, f"`levels` must have at most {self.steps} steps, got {time}")
        return self.weight[:time], self.bias[:time]


class BiLS2TBlock(nn.Module):
    """Time embedding, differences, BiLS2T and level normalisation; returns `2 · order · width` channels.

    Args:
        in_features: number of channels of the input.
        width: number of functionals per direction.
        order: number of levels.
        steps: None for our variant; otherwise the published one, for at most this many steps: functionals
            have a bias, and levels are normalised with an `eps` of 1e-3 and a scale and shift at every step.
    """

    def __init__(self, in_features: int, width: int, order: int, steps: int | None = None) -> None:
        super().__init__()
        # after differencing, the time coordinate is a constant, so that no bias is needed
        bias = steps is not None
        self.ls2t = BiLS2T(in_features + 1, width, order, weights="independent", bias=bias)
        self.out_features = 2 * order * width
        self.norm = LevelNorm(order, 2 * width, OUR_EPS if steps is None else PUBLISHED_EPS, steps)

    def forward(self, x: Values, mask: Mask | None = None) -> Float[Tensor, "batch time features"]:
        """Return functionals of the past and of the future of each step."""
        path = F.difference(F.time_embedding(x, mask=mask), mask=mask)
        return self.norm(self.ls2t(path, mask), mask).flatten(2)
