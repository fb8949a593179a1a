"""Encoders: map the observed entries of a sequence to the posterior of its latent path."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens import functional as F
from seq2tens.models.gpvae.layers import BiLS2TBlock, ImagePreprocessor, dense_layers
from seq2tens.models.gpvae.posterior import Posterior
from seq2tens.nn import MaskedConv

Kind = Literal["conv", "bls2t", "bls2t-published", "dense"]
Bands = Literal["softplus", "sigmoid"]
Covariance = Literal["banded", "diagonal", "deviations"]

Values = Float[Tensor, "batch time channels"]
Observed = Bool[Tensor, "batch time channels"]
Mask = Bool[Tensor, "batch time"]


class Encoder(nn.Module):
    """Mean and two bands of a posterior: a convolution over time, optionally LS2T, then dense layers.

    The factor B of the posterior's precision is I plus positive bands. Missing entries are set to 0; for LS2T
    layers, which take differences, the last value is carried forward.

    Args:
        n_channels: number of channels of the sequences.
        latent: number of latent dimensions.
        kind: `"conv"`; `"bls2t"`, with a bidirectional LS2T layer between convolution and dense layers that
            has as many functionals per direction as the convolution has filters; `"bls2t-published"`, with
            half as many, see `BiLS2TBlock`; or `"dense"`, dense layers at each step without a convolution.
        sizes: width of the convolution, if there is one, then those of the dense layers.
        window: kernel size of the convolution, in steps.
        order: highest level of the LS2T layer.
        steps: maximum length of a sequence, for `"bls2t-published"`.
        image_shape: height, width and colours if a step is an image; two convolutions are applied to it.
        image_relu: apply a ReLU after the second of these as well, as published.
        bands: how bands become positive: `"softplus"`, or `"sigmoid"`, which bounds them by 1.
        covariance: `"banded"`; `"diagonal"` for independent steps; `"deviations"` for independent steps with
            the softplus of the network's output as standard deviation.
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
        steps: int | None = None,
        image_shape: tuple[int, int, int] | None = None,
        image_relu: bool = False,
        bands: Bands = "softplus",
        covariance: Covariance = "banded",
    ) -> None:
        super().__init__()
        check.choice("kind", kind, get_args(Kind))
        check.choice("bands", bands, get_args(Bands))
        check.choice("covariance", covariance, get_args(Covariance))
        check.positive_int("latent", latent)
        check.require(len(sizes) > 0, "`sizes` must begin with the width of the convolution, got none")
        check.require(
            (steps is not None) == (kind == "bls2t-published"),
            f"`steps` must be given for the encoder 'bls2t-published' and no other, got {steps} for {kind!r}",
        )
        _check_image(image_shape, n_channels)
        self.n_channels, self.latent = n_channels, latent
        self.kind, self.bands, self.covariance = kind, bands, covariance
        width, *hidden = sizes
        self.image = None if image_shape is None else ImagePreprocessor(image_shape, last_relu=image_relu)
        self.convolution = None if kind == "dense" else MaskedConv(n_channels, width, window)
        self.block = _block(kind, width, order, steps)
        features = width if self.block is None else self.block.out_features
        if kind == "dense":
            features, hidden = n_channels, list(sizes)
        self.dense = dense_layers(features, hidden, (3 if covariance == "banded" else 2) * latent)

    def forward(
        self, values: Values, observed: Observed | None = None, lengths: Int[Tensor, " batch"] | None = None
    ) -> Posterior:
        """Return the posterior given the observed entries; the others may hold any value."""
        check.sequences("values", values)
        inside = check.step_mask(values, None, lengths)
        x = self._fill(values, observed, inside)
        if self.image is not None:
            x = self.image(x)
        if self.convolution is not None:
            x = self.convolution(x, inside)
        if self.block is not None:
            x = self.block(x, inside)
        return self._posterior(self.dense(x), lengths)

    def _fill(self, values: Values, observed: Observed | None, inside: Mask | None) -> Values:
        if observed is None:
            observed = torch.ones_like(values, dtype=torch.bool)
        if self.block is not None:
            return F.forward_fill(values, observed=observed, mask=inside)
        return torch.where(observed if inside is None else observed & inside[..., None], values, 0.0)

    def _posterior(self, raw: Float[Tensor, "batch time bands"], lengths: Tensor | None) -> Posterior:
        mean, *rest = raw.split(self.latent, dim=-1)
        if self.covariance == "deviations":
            precision = nn.functional.softplus(rest[0]).reciprocal()
            return Posterior(mean, precision, torch.zeros_like(precision[:, :-1]), lengths)
        positive = nn.functional.softplus if self.bands == "softplus" else torch.sigmoid
        diagonal, *coupling = (positive(band) for band in rest)
        off_diagonal = coupling[0][:, :-1] if coupling else torch.zeros_like(diagonal[:, :-1])
        return Posterior(mean, 1 + diagonal, off_diagonal, lengths)


def _block(kind: Kind, width: int, order: int, steps: int | None) -> BiLS2TBlock | None:
    if kind == "bls2t-published":
        return BiLS2TBlock(width, width // 2, order, steps)
    return BiLS2TBlock(width, width, order) if kind == "bls2t" else None


def _check_image(image_shape: tuple[int, int, int] | None, n_channels: int) -> None:
    if image_shape is None:
        return
    fits = len(image_shape) == 3 and math.prod(image_shape) == n_channels
    check.require(
        fits,
        f"`image_shape` must be (height, width, colours) with {n_channels} values, the channels of a step, "
        f"got {tuple(image_shape)}",
    )
