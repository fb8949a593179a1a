"""Variational autoencoders of sequences with missing entries, written from their papers' descriptions.

`GPVAE` is one model; its prior, encoder and masking make it the GP-VAE, HI-VAE or VAE.
"""

from seq2tens.models.gpvae.decoders import Decoder
from seq2tens.models.gpvae.encoders import Encoder
from seq2tens.models.gpvae.model import GPVAE, Elbo
from seq2tens.models.gpvae.posterior import Posterior
from seq2tens.models.gpvae.priors import Factor, Prior

__all__ = ["GPVAE", "Decoder", "Elbo", "Encoder", "Factor", "Posterior", "Prior"]
