"""GP-VAE: a decoder of latent Gaussian processes, and an encoder that infers the latent path."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens._moved import moved_argument
from seq2tens.models.gpvae.decoders import Decoder, Likelihood
from seq2tens.models.gpvae.encoders import Bands, Covariance, Encoder, Kind
from seq2tens.models.gpvae.posterior import Posterior
from seq2tens.models.gpvae.priors import Factor, Prior

Values = Float[Tensor, "batch time channels"]
Observed = Bool[Tensor, "batch time channels"]
Lengths = Int[Tensor, " batch"]
Noise = Float[Tensor, "*samples batch time latent"]


class Elbo(NamedTuple):
    """The evidence lower bound of each sequence, `log_likelihood - β · kl`, and its parts."""

    value: Float[Tensor, " batch"]
    log_likelihood: Float[Tensor, " batch"]
    kl: Float[Tensor, " batch"]


class GPVAE(nn.Module):
    """A variational autoencoder of sequences with missing entries and Gaussian processes as latent paths.

    Fortuin et al., "GP-VAE: Deep probabilistic time series imputation" (2020). `encoder="bls2t"` is the
    encoder of the Seq2Tens paper, and `"bls2t-published"` its published implementation. With
    `Prior("independent")` and `covariance="diagonal"` the model is the HI-VAE (as published, with
    `encoder="dense"` and `covariance="deviations"`), and with `masked=False` in addition the plain VAE.

    Args:
        n_channels: number of channels of the sequences.
        latent: number of latent dimensions.
        encoder: see `Encoder`, also for `encoder_sizes`, `window`, `order`, `steps`, `image_shape`,
            `image_relu`, `bands` and `covariance`.
        decoder_sizes: see `Decoder`, also for `likelihood` and `variance`.
        prior: prior of the latent path.
        beta: weight of the Kullback-Leibler divergence.
        masked: only observed entries count in the bound; otherwise missing ones count as zeros.
    """

    def __init__(
        self,
        n_channels: int,
        latent: int,
        *,
        encoder: Kind = "conv",
        encoder_sizes: Sequence[int] = (256, 256),
        window: int = 3,
        order: int = 4,
        steps: int | None = None,
        image_shape: tuple[int, int, int] | None = None,
        image_relu: bool = False,
        bands: Bands = "softplus",
        covariance: Covariance = "banded",
        decoder_sizes: Sequence[int] = (256, 256, 256),
        likelihood: Likelihood = "gaussian",
        variance: float | Literal["learn"] = 1.0,
        prior: Prior | None = None,
        beta: float = 1.0,
        masked: bool = True,
    ) -> None:
        super().__init__()
        check.require(0 <= beta < math.inf, f"`beta` must be a finite number of at least 0, got {beta}")
        self.n_channels, self.latent, self.beta, self.masked = n_channels, latent, beta, masked
        self.prior = Prior() if prior is None else prior
        self.encoder = Encoder(
            n_channels,
            latent,
            kind=encoder,
            sizes=encoder_sizes,
            window=window,
            order=order,
            steps=steps,
            image_shape=image_shape,
            image_relu=image_relu,
            bands=bands,
            covariance=covariance,
        )
        self.decoder = Decoder(
            latent, n_channels, sizes=decoder_sizes, likelihood=likelihood, variance=variance
        )

    @moved_argument("seen", "visible")
    def elbo(
        self,
        values: Values,
        observed: Observed | None = None,
        lengths: Lengths | None = None,
        *,
        visible: Observed | None = None,
        noise: Noise | None = None,
        generator: torch.Generator | None = None,
        n_samples: int = 1,
    ) -> Elbo:
        """Return the evidence lower bound of each sequence, averaged over draws of its latent path.

        Draws use `noise`, standard normal, or the generator. Entries that are not observed and steps beyond
        the length may hold any value. With `visible`, the encoder sees fewer entries than were observed; the
        bound holds for any posterior.
        """
        posterior = self.encode(values, observed if visible is None else visible, lengths)
        divergence = posterior.kl(self._prior_at(posterior)).sum(1)
        targets, counted = self._targets(values, observed, posterior)
        paths = posterior.sample(self._noise(posterior, noise, generator, n_samples))
        fit = self._log_density(paths, targets, counted)
        return Elbo(fit - self.beta * divergence, fit, divergence)

    forward = elbo

    def encode(
        self, values: Values, observed: Observed | None = None, lengths: Lengths | None = None
    ) -> Posterior:
        """Return the posterior of the latent path given the observed entries."""
        self._check("values", values, observed)
        return self.encoder(values, observed, lengths)

    def reconstruct(
        self, values: Values, observed: Observed | None = None, lengths: Lengths | None = None
    ) -> Values:
        """Return the expected values of all entries at the mean of the latent path; 0 beyond the length."""
        posterior = self.encode(values, observed, lengths)
        return posterior.clear(self.decoder.mean(self.decoder(posterior.mean)))

    def sample(
        self,
        values: Values,
        observed: Observed | None = None,
        lengths: Lengths | None = None,
        *,
        n_samples: int = 1,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, "samples batch time channels"]:
        """Draw all entries, each time from a draw of the latent path; 0 beyond the length."""
        posterior = self.encode(values, observed, lengths)
        paths = posterior.sample(self._noise(posterior, None, generator, n_samples))
        return posterior.clear(self.decoder.draw(self.decoder(paths), generator))

    def log_likelihood(
        self,
        values: Values,
        observed: Observed | None,
        targets: Values,
        held_out: Observed,
        lengths: Lengths | None = None,
        *,
        noise: Noise | None = None,
        generator: torch.Generator | None = None,
        n_samples: int = 1,
    ) -> Float[Tensor, " batch"]:
        """Return the log-likelihood of the held-out entries of `targets`, given the observed ones.

        It is the mean over draws of the latent path, as in the published tables, not the logarithm of a mean,
        which is larger.
        """
        self._check("targets", targets, held_out, "held_out")
        posterior = self.encode(values, observed, lengths)
        counted = held_out if posterior.inside is None else held_out & posterior.inside[..., None]
        paths = posterior.sample(self._noise(posterior, noise, generator, n_samples))
        return self._log_density(paths, torch.where(counted, targets, 0.0), counted)

    def _prior_at(self, posterior: Posterior) -> Factor:
        mean = posterior.mean
        return self.prior.at(mean.shape[1], dtype=mean.dtype, device=mean.device)

    def _targets(
        self, values: Values, observed: Observed | None, posterior: Posterior
    ) -> tuple[Values, Observed]:
        """Return the targets of the bound, and which of their entries count."""
        inside = torch.ones_like(values, dtype=torch.bool)
        if posterior.inside is not None:
            inside = inside & posterior.inside[..., None]
        known = inside if observed is None else inside & observed
        return torch.where(known, values, 0.0), known if self.masked else inside

    def _log_density(self, paths: Tensor, targets: Values, counted: Observed) -> Float[Tensor, " batch"]:
        """Sum the log-density; targets must be finite, as a NaN reaches gradients even if not counted."""
        density = self.decoder.log_density(self.decoder(paths), targets)
        return (density * counted).sum((-2, -1)).mean(0)

    def _noise(
        self, posterior: Posterior, noise: Noise | None, generator: torch.Generator | None, n_samples: int
    ) -> Float[Tensor, "samples batch time latent"]:
        mean = posterior.mean
        if noise is not None:
            return noise if noise.dim() == 4 else noise[None]
        check.positive_int("n_samples", n_samples)
        shape = (n_samples, *mean.shape)
        return torch.randn(shape, generator=generator, dtype=mean.dtype, device=mean.device)

    def _check(
        self, name: str, values: Tensor, observed: Tensor | None, observed_name: str = "observed"
    ) -> None:
        check.sequences(name, values)
        check.not_empty(name, values)
        expected = (*values.shape[:2], self.n_channels)
        check.shape(name, values, expected, "(batch, time, n_channels)")
        if observed is None:
            return
        if observed.dtype != torch.bool:
            raise TypeError(f"`{observed_name}` must be boolean, got {observed.dtype}")
        check.shape(observed_name, observed, expected, "(batch, time, n_channels)")
