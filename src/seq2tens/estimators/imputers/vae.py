"""Variational autoencoders as imputers: settings of one model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from seq2tens import _checks as check
from seq2tens.estimators.imputers.autoencoder import LatentImputer
from seq2tens.estimators.saving import plain
from seq2tens.models.gpvae import Prior
from seq2tens.models.gpvae.priors import Kernel


@dataclass(kw_only=True, eq=False, repr=False)
class GPVAEImputer(LatentImputer):
    """GP-VAE: latent paths are Gaussian processes over time; missing entries are filled, and drawn, with what
    came before and after them.

    Args:
        encoder: `"conv"`, or `"bls2t"` with a bidirectional low-rank Seq2Tens layer as well, which sees the
            whole past and future of each step.
        order: highest level of that layer.
        kernel: of the Gaussian processes, see `models.gpvae.Prior`. For sequences of thousands of steps take
            `"matern12"`, which needs no matrices.
        length_scale: of the kernel, in steps.
        scale: variance of the Gaussian processes.

    The other arguments are those of every `LatentImputer`.

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
    """HI-VAE: steps are independent of each other in the latent space; only the convolution of the encoder
    looks at neighbouring ones.

    The arguments are those of every `LatentImputer`.
    """

    _masked: ClassVar[bool] = True

    def _settings(self) -> dict[str, Any]:
        return {"prior": Prior("independent"), "covariance": "diagonal", "masked": self._masked}


@dataclass(kw_only=True, eq=False, repr=False)
class VAEImputer(HIVAEImputer):
    """The plain variational autoencoder: as the HI-VAE, but missing entries count as zeros of the scaled
    data, that is as the mean of the channel.

    The arguments are those of every `LatentImputer`.
    """

    _masked: ClassVar[bool] = False
