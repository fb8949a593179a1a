"""Variational autoencoders of sequences with missing entries, written from their papers' descriptions.

`GPVAE` is one model; its prior, encoder and masking make it the GP-VAE, HI-VAE or VAE. It trains with
`training.fit` by `NegativeElbo` on an `IncompleteSource` or a `RaggedSource`.
"""

from seq2tens.models.gpvae.decoders import Decoder
from seq2tens.models.gpvae.decoders import Likelihood as Likelihood
from seq2tens.models.gpvae.encoders import Encoder
from seq2tens.models.gpvae.loss import HELD_OUT_METRICS, NegativeElbo
from seq2tens.models.gpvae.model import GPVAE, Elbo
from seq2tens.models.gpvae.posterior import Posterior
from seq2tens.models.gpvae.priors import Factor, Prior
from seq2tens.models.gpvae.priors import Kernel as Kernel
from seq2tens.models.gpvae.sources import IncompleteBatch, IncompleteSource, Part, RaggedSource

__all__ = [
    "GPVAE",
    "HELD_OUT_METRICS",
    "Decoder",
    "Elbo",
    "Encoder",
    "Factor",
    "IncompleteBatch",
    "IncompleteSource",
    "NegativeElbo",
    "Part",
    "Posterior",
    "Prior",
    "RaggedSource",
]
