"""Encoders: from what was observed of a sequence to the posterior of its latent path."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens import functional as F
from seq2tens.models.gpvae.layers import BiLS2TBlock, ImagePreprocessor, dense_layers
from seq2tens.models.gpvae.posterior import Posterior
from seq2tens.nn import MaskedConv

Kind = Literal["conv", "bls2t"]
Bands = Literal["softplus", "sigmoid"]
Covariance = Literal["banded", "diagonal"]

Values = Float[Tensor, "batch time channels"]
Observed = Bool[Tensor, "batch time channels"]
Mask = Bool[Tensor, "batch time"]


class Encoder(nn.Module):
    """Convolution over time, [bidirectional LS2T,] dense layers: the mean and the two bands of a posterior.

    The factor B of the posterior's precision is I plus positive bands. Missing entries are 0 for `"conv"`;
    for `"bls2t"`, which takes differences, the last value is carried forward.

    Args:
        n_channels: channels of the sequences.
        latent: latent dimensions.
        kind: `"conv"`, or `"bls2t"` with a bidirectional LS2T layer between convolution and dense layers.
        sizes: width of the convolution, then those of the dense layers.
        window: steps that the convolution sees.
        order: highest level of the LS2T layer.
        image_shape: height, width and colours where a step is an image, for two convolutions over it.
        bands: how bands become positive, `"softplus"` or `"sigmoid"`, which bounds them by 1.
        covariance: `"banded"`, or `"diagonal"` for steps that are independent of each other.
    """

    def __init__(
        self,
        n_channels: int,
        latent: int,
        *,
        kind: Kind = "conv",
        sizes: Sequence[int] = (256, 256),
        window: int = 3,
        order: int = 4,
        image_shape: tuple[int, int, int] | None = None,
        bands: Bands = "softplus",
        covariance: Covariance = "banded",
    ) -> None:
        super().__init__()
        check.choice("kind", kind, ("conv", "bls2t"))
        check.choice("bands", bands, ("softplus", "sigmoid"))
        check.choice("covariance", covariance, ("banded", "diagonal"))
        check.positive_int("latent", latent)
        check.require(len(sizes) > 0, "`sizes` must begin with the width of the convolution, got none")
        _check_image(image_shape, n_channels)
        self.n_channels, self.latent = n_channels, latent
        self.kind, self.bands, self.covariance = kind, bands, covariance
        width, *hidden = sizes
        self.image = None if image_shape is None else ImagePreprocessor(image_shape)
        self.convolution = MaskedConv(n_channels, width, window)
        self.block = BiLS2TBlock(width, width, order) if kind == "bls2t" else None
        features = width if self.block is None else self.block.out_features
        self.dense = dense_layers(features, hidden, (3 if covariance == "banded" else 2) * latent)

    def forward(
        self, values: Values, observed: Observed | None = None, lengths: Int[Tensor, " batch"] | None = None
    ) -> Posterior:
        """The posterior given the observed entries; all others may hold anything."""
        check.sequences("values", values)
        inside = check.step_mask(values, None, lengths)
        x = self._fill(values, observed, inside)
        if self.image is not None:
            x = self.image(x)
        x = self.convolution(x, inside)
        if self.block is not None:
            x = self.block(x, inside)
        return self._posterior(self.dense(x), lengths)

    def _fill(self, values: Values, observed: Observed | None, inside: Mask | None) -> Values:
        if observed is None:
            observed = torch.ones_like(values, dtype=torch.bool)
        if self.kind == "bls2t":
            return F.forward_fill(values, observed=observed, mask=inside)
        return torch.where(observed if inside is None else observed & inside[..., None], values, 0.0)

    def _posterior(self, raw: Float[Tensor, "batch time bands"], lengths: Tensor | None) -> Posterior:
        mean, *rest = raw.split(self.latent, dim=-1)
        positive = nn.functional.softplus if self.bands == "softplus" else torch.sigmoid
        diagonal, *coupling = (positive(band) for band in rest)
        off_diagonal = coupling[0][:, :-1] if coupling else torch.zeros_like(diagonal[:, :-1])
        return Posterior(mean, 1 + diagonal, off_diagonal, lengths)


def _check_image(image_shape: tuple[int, int, int] | None, n_channels: int) -> None:
    if image_shape is None:
        return
    fits = len(image_shape) == 3 and math.prod(image_shape) == n_channels
    check.require(
        fits,
        f"`image_shape` must be (height, width, colours) with {n_channels} values, the channels of a step, "
        f"got {tuple(image_shape)}",
    )
