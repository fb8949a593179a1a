"""Posteriors and the matrices that they stand for, in double precision."""

import torch

from seq2tens.models.gpvae import Posterior

EXACT = {"rtol": 1e-8, "atol": 1e-8}
PRIORS = {
    "cauchy": {"length_scale": 2.0, "scale": 1.3},
    "rbf": {"length_scale": 1.5},
    "matern12": {"length_scale": 3.0, "scale": 0.7},
    "matern32": {"length_scale": 2.0},
    "matern52": {"length_scale": 2.0, "jitter": 1e-2},
    "independent": {"scale": 1.4},
}


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def bands(batch, time, latent, seed=0):
    """Mean, diagonal and off-diagonal; ratios of either sign, some of them greater than 1."""
    mean, raw, off = (normal(batch, time, latent, seed=3 * seed + i) for i in range(3))
    return mean, 0.3 + torch.nn.functional.softplus(raw), off[:, 1:]


def posterior(batch=2, time=5, latent=3, seed=0, lengths=None):
    return Posterior(*bands(batch, time, latent, seed), lengths)


def root(diagonal, off_diagonal):
    """R = B⁻ᵀ, so that A = R Rᵀ, `(batch, latent, time, time)`."""
    factor = torch.diag_embed(diagonal.mT) + torch.diag_embed(off_diagonal.mT, offset=-1)
    return torch.linalg.inv(factor).mT


def covariance(mean, diagonal, off_diagonal):
    """A, `(batch, latent, time, time)`."""
    return root(diagonal, off_diagonal) @ root(diagonal, off_diagonal).mT


def log_volume(triangular):
    """log |det|, read off the diagonal: elimination overflows where entries range over many decades."""
    return triangular.diagonal(dim1=-2, dim2=-1).abs().log().sum(-1)


def kl(mean, diagonal, off_diagonal, prior_covariance):
    """KL(N(m, A) ‖ N(0, K)), with one K for all or one for each latent dimension."""
    lower = torch.linalg.cholesky(prior_covariance)
    upper = root(diagonal, off_diagonal)
    white = torch.linalg.solve_triangular(lower, upper, upper=False)
    distance = torch.linalg.solve_triangular(lower, mean.mT[..., None], upper=False)
    squares = white.square().sum((-2, -1)) + distance.square().sum((-2, -1))
    return 0.5 * (squares - mean.shape[1]) + log_volume(lower) - log_volume(upper)
