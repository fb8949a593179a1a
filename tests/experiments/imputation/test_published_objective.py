"""The bound of the published GP-VAE for Physionet, written out with dense matrices."""

import math

import pytest
import torch

from seq2tens.experiments.imputation.models import network

STEPS, CHANNELS, LATENT = 48, 35, 35


def stays(n=3, seed=0):
    """Values with 0 where nothing was observed, what was observed, and noise."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(n, STEPS, CHANNELS, dtype=torch.float64, generator=generator)
    observed = torch.rand(values.shape, generator=generator) < 0.2
    noise = torch.randn(n, STEPS, LATENT, dtype=torch.float64, generator=generator)
    return torch.where(observed, values, 0.0), observed, noise


def prior():
    """The Cauchy kernel with its jitter."""
    time = torch.arange(STEPS, dtype=torch.float64)
    distance = (time[:, None] - time) / 7
    return 1.005 / (1 + distance**2) + 1e-3 * torch.eye(STEPS, dtype=torch.float64)


def published_bound(model, values, observed, noise):
    """The bound, with an upper bidiagonal B: time runs backwards in the posterior, compared with ours."""
    weight, bias = model.encoder.convolution.weight, model.encoder.convolution.bias
    padded = torch.nn.functional.pad(values.mT, (11, 12))
    outputs = model.encoder.dense(torch.nn.functional.conv1d(padded, weight, bias).mT).mT.flip(-1)
    mean, diagonal, coupling = outputs.split(LATENT, dim=1)
    upper = torch.diag_embed(1 + diagonal.sigmoid()) + torch.diag_embed(coupling.sigmoid()[..., 1:], offset=1)
    factor = torch.linalg.inv(upper).mT  # of the covariance
    path = mean + (factor @ noise.mT.flip(-1)[..., None])[..., 0]
    errors = values - model.decoder.dense(path.flip(-1).mT)
    fit = -0.5 * torch.where(observed, errors**2 + math.log(2 * math.pi), 0.0).sum((1, 2))
    covariance, kernel = factor @ factor.mT, prior()
    precision = torch.linalg.inv(kernel)
    spread = (precision * covariance).sum((-2, -1)) + torch.einsum("nls,st,nlt->nl", mean, precision, mean)
    kl = 0.5 * (spread - STEPS + torch.logdet(kernel) - torch.logdet(covariance))
    return fit - 0.2 * kl.sum(1)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return network("physionet", "gp-vae").double()


def test_value_and_derivatives(model):
    values, observed, noise = stays()
    ours, theirs = model(values, observed, noise=noise).value, published_bound(model, values, observed, noise)
    assert ours.detach() == pytest.approx(theirs.detach().numpy(), rel=1e-10)
    weights = list(model.parameters())
    for found, expected in zip(
        torch.autograd.grad(ours.mean(), weights), torch.autograd.grad(theirs.mean(), weights), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10 * float(expected.abs().max()))
