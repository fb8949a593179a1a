"""Priors: their kernels, their factors, and what is kept."""

import math

import pytest
import torch
from torch.testing import assert_close

from models.gpvae.dense import EXACT, PRIORS, normal
from seq2tens.models.gpvae import Prior, priors
from seq2tens.models.gpvae.priors import BandedFactor, DenseFactor

SQRT3, SQRT5 = math.sqrt(3), math.sqrt(5)
IRREGULAR = torch.tensor([0.0, 0.4, 1.1, 3.0, 3.2, 7.5], dtype=torch.float64)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("cauchy", 1.5 / (1 + 9 / 4)),
        ("rbf", 1.5 * math.exp(-9 / 8)),
        ("matern12", 1.5 * math.exp(-3 / 2)),
        ("matern32", 1.5 * (1 + SQRT3 * 1.5) * math.exp(-SQRT3 * 1.5)),
        ("matern52", 1.5 * (1 + SQRT5 * 1.5 + 5 * 2.25 / 3) * math.exp(-SQRT5 * 1.5)),
        ("independent", 0.0),
    ],
)
def test_kernels(kernel, expected):
    found = Prior(kernel, length_scale=2.0, scale=1.5, jitter=0.1).covariance(4)
    assert found.shape == (1, 4, 4)
    assert float(found[0, 0, 3]) == pytest.approx(expected, rel=1e-12)
    assert_close(found[0].diagonal(), torch.full((4,), 1.6, dtype=torch.float64))
    assert_close(found, found.mT, rtol=0, atol=0)


def test_several_length_scales():
    several = Prior("cauchy", length_scale=8.0, n_scales=3).covariance(6)
    single = [Prior("cauchy", length_scale=length).covariance(6)[0] for length in (8.0, 4.0, 2.0)]
    assert_close(several, torch.stack(single), rtol=0, atol=0)


@pytest.mark.parametrize("kernel", PRIORS)
@pytest.mark.parametrize("times", [1, 9, IRREGULAR])
def test_factor_whitens_the_covariance(kernel, times):
    prior = Prior(kernel, **PRIORS[kernel])
    covariance, factor = prior.covariance(times)[0], prior.at(times, dtype=torch.float64)
    size = len(covariance)
    white = factor.whiten(factor.whiten(covariance).mT)
    assert_close(white, torch.eye(size, dtype=torch.float64), **EXACT)
    for length in range(1, size + 1):
        expected = torch.linalg.slogdet(covariance[:length, :length]).logabsdet
        assert_close(factor.log_determinant(1, torch.tensor([length]))[0, 0], expected, **EXACT)


def test_markov_priors_are_banded():
    assert isinstance(Prior("matern12").at(5), BandedFactor)
    assert isinstance(Prior("independent").at(5), BandedFactor)
    assert isinstance(Prior("matern12", jitter=1e-3).at(5), DenseFactor)
    assert isinstance(Prior("matern32").at(5), DenseFactor)


def test_short_distances_of_a_markov_prior_keep_their_digits():
    times = torch.tensor([0.0, 1e-10, 1.0], dtype=torch.float64)
    white = Prior("matern12", length_scale=1.0).at(times, dtype=torch.float64).whiten(normal(3, 1))
    path = normal(3, 1)
    assert_close(white[1], (path[1] - path[0] * math.exp(-1e-10)) / math.sqrt(2e-10), rtol=1e-8, atol=0)


def test_what_depends_on_the_length_alone_is_kept(monkeypatch):
    prior = Prior("rbf", length_scale=1.25)
    factor = prior.at(12)
    assert Prior("rbf", length_scale=1.25).at(12) is factor
    assert prior.at(12, dtype=torch.float64) is not factor
    variance = torch.ones(4, 12, 2)
    lengths = torch.tensor([12, 5, 5, 7])
    first = factor.trace(variance, 0.1 * variance, lengths)
    assert list(factor._precisions) == [5, 7, 12]
    kept = factor._precisions[7]
    monkeypatch.setattr(priors, "LARGEST_MEMORY", 200)
    factor.trace(variance, variance, torch.tensor([9, 7, 9, 9]))
    assert list(factor._precisions) == [7, 9]
    assert factor._precisions[7] is kept
    assert_close(factor.trace(variance, 0.1 * variance, lengths), first, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "linear"}, "`kernel` must be one of 'cauchy', .* got 'linear'"),
        ({"length_scale": 0.0}, "`length_scale` must be a finite number greater than 0, got 0.0"),
        ({"scale": math.inf}, "`scale` must be a finite number greater than 0, got inf"),
        ({"jitter": -1.0}, "`jitter` must be a finite number of at least 0, got -1.0"),
        ({"n_scales": 0}, "`n_scales` must be at least 1, got 0"),
    ],
)
def test_mistakes_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Prior(**options)


def test_mistakes_in_times_are_named():
    with pytest.raises(
        ValueError, match=r"`jitter` must be large enough .* 60 steps .* got 0 for kernel 'rbf'"
    ):
        Prior("rbf", length_scale=10.0, jitter=0).at(60)
    with pytest.raises(ValueError, match="`times` must be finite and increase"):
        Prior().at(torch.tensor([0.0, 1.0, 1.0]))
    with pytest.raises(ValueError, match=r"`times` must have one axis .* got shape \(2, 3\)"):
        Prior().at(torch.ones(2, 3))
