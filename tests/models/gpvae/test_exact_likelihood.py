"""A linear decoder and a Markov prior: evidence and posterior are known, and the bound can be compared."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from models.gpvae.dense import EXACT, kl, normal
from seq2tens.models.gpvae import GPVAE, Posterior, Prior

TIME, CHANNELS, VARIANCE = 7, 4, 0.6
PRIOR = Prior("matern12", length_scale=3.0, scale=1.3)


class Given(nn.Module):
    """An encoder that has made up its mind."""

    def __init__(self, posterior):
        super().__init__()
        self.posterior = posterior

    def forward(self, values, observed=None, lengths=None):
        return self.posterior


def linear_model(latent, beta=1.0):
    """Columns of the decoder are orthogonal, so that latent dimensions are independent given the values."""
    torch.manual_seed(0)  # the encoder's weights are drawn
    model = GPVAE(
        CHANNELS, latent, decoder_sizes=(), variance=VARIANCE, prior=PRIOR, beta=beta, encoder_sizes=(3,)
    ).double()
    with torch.no_grad():
        model.decoder.dense[0].weight.copy_(torch.linalg.qr(normal(CHANNELS, latent)).Q * 1.7)
        model.decoder.dense[0].bias.copy_(normal(CHANNELS, seed=1))
    return model


def evidence(model, values, observed):
    """log p of the observed entries of one sequence."""
    weight, bias = model.decoder.dense[0].weight, model.decoder.dense[0].bias
    full = torch.einsum("st,cj,dj->sctd", PRIOR.covariance(TIME)[0], weight, weight)
    full = full.reshape(TIME * CHANNELS, TIME * CHANNELS) + VARIANCE * torch.eye(
        TIME * CHANNELS, dtype=torch.float64
    )
    seen = observed.flatten()
    normal_of_seen = torch.distributions.MultivariateNormal(bias.repeat(TIME)[seen], full[seen][:, seen])
    return normal_of_seen.log_prob(values.flatten()[seen])


def exact_posterior(model, values, observed):
    """Mean and precision of each latent dimension, `(latent, time)` and `(latent, time, time)`."""
    weight, bias = model.decoder.dense[0].weight, model.decoder.dense[0].bias
    told = observed.double() @ weight.square() / VARIANCE
    precision = torch.linalg.inv(PRIOR.covariance(TIME)[0]) + torch.diag_embed(told.mT)
    pull = torch.where(observed, values - bias, 0.0) @ weight / VARIANCE
    return torch.linalg.solve(precision, pull.mT[..., None])[..., 0], precision


def sigma_points(latent):
    """Noise with mean 0 and covariance I: the mean of any quadratic function over it is exact."""
    n = TIME * latent
    points = n**0.5 * torch.eye(n, dtype=torch.float64).reshape(n, 1, TIME, latent)
    return torch.cat([points, -points])


def case(latent, missing):
    values = normal(1, TIME, CHANNELS, seed=4)
    observed = normal(1, TIME, CHANNELS, seed=5) > -0.4 if missing else torch.ones(1, TIME, CHANNELS).bool()
    return linear_model(latent), values, observed


@pytest.mark.parametrize(("latent", "missing"), [(1, False), (3, False), (1, True)])
def test_bound_is_reached_by_the_exact_posterior(latent, missing):
    model, values, observed = case(latent, missing)
    mean, precision = exact_posterior(model, values[0], observed[0])
    lower = torch.linalg.cholesky(precision)
    assert lower.tril(-2).abs().max() < 1e-12
    bands = [lower.diagonal(offset, 1, 2).mT[None] for offset in (0, -1)]
    model.encoder = Given(Posterior(mean.mT[None], *bands))
    bound = model.elbo(values, observed, noise=sigma_points(latent))
    assert_close(bound.value[0], evidence(model, values[0], observed[0]), **EXACT)


@pytest.mark.parametrize(("latent", "missing"), [(1, False), (3, False), (1, True)])
def test_gap_is_the_divergence_from_the_exact_posterior(latent, missing):
    model, values, observed = case(latent, missing)
    posterior = model.encode(values, observed)
    bound = model.elbo(values, observed, noise=sigma_points(latent))
    gap = evidence(model, values[0], observed[0]) - bound.value[0]
    mean, precision = exact_posterior(model, values[0], observed[0])
    shifted = posterior.mean - mean.mT
    expected = kl(shifted, posterior.diagonal, posterior.off_diagonal, torch.linalg.inv(precision)).sum()
    assert gap > 0.1
    assert_close(gap, expected, **EXACT)


def test_draws_estimate_the_bound():
    model, values, observed = case(3, True)
    exact = model.elbo(values, observed, noise=sigma_points(3))
    drawn = model.elbo(values, observed, n_samples=20_000, generator=torch.Generator().manual_seed(0))
    assert_close(drawn.value, exact.value, rtol=0, atol=0.1)
    assert_close(drawn.kl, exact.kl, rtol=0, atol=0)


def test_beta_weighs_the_divergence():
    values = normal(1, TIME, CHANNELS)
    bound = linear_model(2, beta=0.3).elbo(values, noise=sigma_points(2))
    assert_close(bound.value, bound.log_likelihood - 0.3 * bound.kl, **EXACT)


def test_samples_have_the_moments_of_the_model():
    model, values, observed = case(2, True)
    drawn = model.sample(values, observed, n_samples=40_000, generator=torch.Generator().manual_seed(1))
    assert_close(drawn.mean(0), model.reconstruct(values, observed), rtol=0, atol=0.05)
    weight, posterior = model.decoder.dense[0].weight, model.encode(values, observed)
    variance = posterior.variance() @ weight.square().mT + VARIANCE
    assert_close(drawn.var(0), variance, rtol=0.05, atol=0)
