"""Variational autoencoders as imputers: GP-VAE, HI-VAE and VAE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from seq2tens import _checks as check
from seq2tens.estimators.imputers.autoencoder import LatentImputer
from seq2tens.estimators.saving import plain
from seq2tens.models.gpvae import Kernel, Prior


@dataclass(kw_only=True, eq=False, repr=False)
class GPVAEImputer(LatentImputer):
    """GP-VAE: the latent paths are Gaussian processes over time.

    Missing entries thus depend on the past and the future.

    Args:
        encoder: `"conv"`, or `"bls2t"`, which adds a bidirectional LS2T layer that sees the whole past and
            future of each step.
        order: order of that layer.
        kernel: kernel of the Gaussian processes, see `models.gpvae.Prior`. For sequences of thousands of
            steps use `"matern12"`, which needs no matrices.
        length_scale: length scale of the kernel, in steps.
        scale: variance of the Gaussian processes.

    See `LatentImputer` for the other arguments.

    Examples:
        >>> import numpy as np
        >>> from seq2tens.estimators import GPVAEImputer
        >>> X = np.random.default_rng(0).normal(size=(8, 2, 12)).cumsum(axis=2)
        >>> X[:, 1, 3:6] = np.nan
        >>> model = GPVAEImputer(epochs=5, random_state=0).fit(X)
        >>> low, high = model.predict_interval(X, coverage=0.9)
        >>> bool((low <= high).all()), model.sample(X, 3, random_state=1).shape
        (True, (3, 8, 2, 12))
    """

    encoder: Literal["conv", "bls2t"] = "conv"
    order: int = 2
    kernel: Kernel = "cauchy"
    length_scale: float = 2.0
    scale: float = 1.0

    def _settings(self) -> dict[str, Any]:
        check.choice("encoder", self.encoder, ("conv", "bls2t"))
        prior = Prior(self.kernel, length_scale=self.length_scale, scale=self.scale)
        return {"encoder": self.encoder, "order": plain.python(self.order), "prior": prior}


@dataclass(kw_only=True, eq=False, repr=False)
class HIVAEImputer(LatentImputer):
    """HI-VAE: steps are independent in the latent space.

    Only the convolution of the encoder sees neighbouring steps. See `LatentImputer` for the arguments.
    """

    _masked: ClassVar[bool] = True

    def _settings(self) -> dict[str, Any]:
        return {"prior": Prior("independent"), "covariance": "diagonal", "masked": self._masked}


@dataclass(kw_only=True, eq=False, repr=False)
class VAEImputer(HIVAEImputer):
    """The standard variational autoencoder.

    Like HI-VAE, but missing inputs are set to 0 in the scaled data, the mean of the channel. See
    `LatentImputer` for the arguments.
    """

    _masked: ClassVar[bool] = False
