"""The banded posterior against dense linear algebra in double precision."""

import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from models.gpvae.dense import EXACT, PRIORS, bands, covariance, kl, normal, posterior
from seq2tens.models.gpvae import Posterior, Prior
from seq2tens.models.gpvae.recurrence import backward_recurrence, block_size

# one step; one block; blocks that come out even; a last block that is not full
TIMES = [1, 2, 16, 17, 48, 75]


@pytest.mark.parametrize("time", TIMES)
def test_log_determinant_and_variances(time):
    given = bands(2, time, 3)
    dense = covariance(*given)
    q = Posterior(*given)
    assert_close(q.log_determinant(), torch.linalg.slogdet(dense).logabsdet, **EXACT)
    assert_close(q.variance(), dense.diagonal(dim1=2, dim2=3).mT, **EXACT)


@pytest.mark.parametrize("time", TIMES)
def test_samples_have_the_covariance(time):
    """The map from noise to samples is linear: its matrix R, read off column by column, has R Rᵀ = A."""
    given = bands(2, time, 3)
    q = Posterior(*given)
    units = torch.eye(time, dtype=torch.float64)[:, None, :, None].expand(time, 2, time, 3)
    columns = (q.sample(units) - q.mean).permute(1, 3, 2, 0)
    assert_close(columns @ columns.mT, covariance(*given), **EXACT)
    assert_close(q.sample(torch.zeros(2, time, 3, dtype=torch.float64)), given[0], rtol=0, atol=0)


def test_samples_solve_the_banded_system():
    mean, diagonal, off = bands(2, 40, 3)
    noise = normal(4, 2, 40, 3, seed=9)
    drawn = Posterior(mean, diagonal, off).sample(noise) - mean
    product = diagonal * drawn
    product[..., :-1, :] += off * drawn[..., 1:, :]
    assert_close(product, noise, **EXACT)


@pytest.mark.parametrize("kernel", PRIORS)
@pytest.mark.parametrize("time", TIMES)
def test_kl(kernel, time):
    prior, given = Prior(kernel, **PRIORS[kernel]), bands(2, time, 3)
    found = Posterior(*given).kl(prior.at(time, dtype=torch.float64))
    assert_close(found, kl(*given, prior.covariance(time)[0]), **EXACT)
    assert (found > 0).all()


@pytest.mark.parametrize("kernel", PRIORS)
def test_kl_of_leading_steps(kernel):
    """A sequence of length l is compared with the leading l × l block, whatever stands behind it."""
    prior, lengths = Prior(kernel, **PRIORS[kernel]), torch.tensor([7, 0, 1, 40, 33, 7])
    given = bands(6, 40, 3)
    q = Posterior(*given, lengths)
    found = q.kl(prior.at(40, dtype=torch.float64))
    noise = normal(6, 40, 3, seed=5)
    for row, n in enumerate(lengths.tolist()):
        assert q.variance()[row, n:].abs().sum() == 0
        assert q.sample(noise)[row, n:].abs().sum() == 0
        if n == 0:
            assert_close(found[row], torch.zeros(3, dtype=torch.float64), **EXACT)
            continue
        mean, diagonal, off = given
        cut = mean[row : row + 1, :n], diagonal[row : row + 1, :n], off[row : row + 1, : n - 1]
        assert_close(found[row], kl(*cut, prior.covariance(n)[0])[0], **EXACT)
        assert_close(q.log_determinant()[row], Posterior(*cut).log_determinant()[0], **EXACT)
        assert_close(q.sample(noise)[row, :n], Posterior(*cut).sample(noise[row : row + 1, :n])[0], **EXACT)


def test_steps_that_do_not_count_may_hold_anything():
    lengths, prior = torch.tensor([3, 20]), Prior("cauchy").at(20, dtype=torch.float64)
    clean = bands(2, 20, 3)
    dirty = [tensor.clone().requires_grad_() for tensor in clean]
    with torch.no_grad():
        for tensor, first in zip(dirty, (3, 3, 2), strict=True):
            tensor[0, first:] = torch.nan
    q = Posterior(*dirty, lengths)
    assert_close(q.kl(prior), Posterior(*clean, lengths).kl(prior), rtol=0, atol=0)
    (q.kl(prior).sum() + q.sample(normal(2, 20, 3)).sum()).backward()
    assert all(tensor.grad.isfinite().all() for tensor in dirty)


def test_kl_with_several_length_scales():
    prior, given = Prior("rbf", length_scale=4.0, n_scales=3), bands(2, 20, 4)
    factor = prior.at(20, dtype=torch.float64)
    sizes = torch.tensor([group.stop - group.start for group in factor.groups(4)])
    assert sizes.tolist() == [1, 1, 2]
    full = prior.covariance(20).repeat_interleave(sizes, dim=0)
    assert_close(Posterior(*given).kl(factor), kl(*given, full), **EXACT)
    lengths = torch.tensor([20, 6])
    found = Posterior(*given, lengths).kl(factor)[1]
    mean, diagonal, off = (tensor[1:] for tensor in given)
    assert_close(found, kl(mean[:, :6], diagonal[:, :6], off[:, :5], full[:, :6, :6])[0], **EXACT)


def test_kl_to_itself_is_zero():
    """A Markov prior is in the family of posteriors: B is the Cholesky factor of its precision."""
    prior = Prior("matern12", length_scale=3.0)
    lower = torch.linalg.cholesky(torch.linalg.inv(prior.covariance(30)[0]))
    diagonal, off = (lower.diagonal(offset)[None, :, None] for offset in (0, -1))
    q = Posterior(torch.zeros_like(diagonal), diagonal, off)
    assert_close(q.kl(prior.at(30, dtype=torch.float64)), torch.zeros(1, 1, dtype=torch.float64), **EXACT)


@pytest.mark.parametrize("kernel", ["cauchy", "matern12"])
@pytest.mark.parametrize("time", [1, 5, 35])
def test_derivatives(kernel, time):
    lengths = torch.tensor([time, max(1, time - 2)])
    factor = Prior(kernel, **PRIORS[kernel]).at(time, dtype=torch.float64)
    noise = normal(3, 2, time, 1, seed=7)
    given = [tensor.requires_grad_() for tensor in bands(2, time, 1)]

    def outputs(*bands):
        q = Posterior(*bands, lengths)
        return q.kl(factor), q.sample(noise), q.variance(), q.log_determinant()

    assert gradcheck(outputs, given, fast_mode=time > 5)


def test_a_coupling_of_zero_has_a_derivative():
    """Products of ratios are formed without quotients, so nothing divides by a ratio that is 0."""
    mean, diagonal, off = bands(1, 35, 1)
    off[:, [3, 16, 20]] = 0.0
    factor = Prior("cauchy").at(35, dtype=torch.float64)
    given = [tensor.requires_grad_() for tensor in (mean, diagonal, off)]
    assert gradcheck(lambda *bands: Posterior(*bands).kl(factor), given)


def test_long_sequences_neither_under_nor_overflow():
    """Products of a thousand ratios range from 1e-300 and less up to 1e+30."""
    time, prior = 1200, Prior("cauchy")
    mean, diagonal = normal(1, time, 2), torch.ones(1, time, 2, dtype=torch.float64)
    off = torch.full((1, time - 1, 2), 0.3, dtype=torch.float64)
    off[..., 1] = torch.where(torch.arange(time - 1) < 70, -2.0, 1e-3)
    found = Posterior(mean, diagonal, off).kl(prior.at(time, dtype=torch.float64))
    assert_close(found, kl(mean, diagonal, off, prior.covariance(time)[0]), rtol=1e-8, atol=0)


@pytest.mark.parametrize("kernel", PRIORS)
def test_single_precision(kernel):
    prior, given = Prior(kernel, **PRIORS[kernel]), bands(2, 60, 3)
    exact = Posterior(*given).kl(prior.at(60, dtype=torch.float64))
    found = Posterior(*(tensor.float() for tensor in given)).kl(prior.at(60, dtype=torch.float32))
    assert found.dtype == torch.float32
    assert_close(found.double(), exact, rtol=1e-4, atol=0)


@pytest.mark.parametrize("time", [1, 3, 16, 33, 100])
def test_recurrence_is_that_of_a_plain_loop(time):
    ratio, given = normal(2, time, 3), normal(2, time, 3, seed=1)
    expected = [given[:, -1]]
    for i in reversed(range(time - 1)):
        expected.insert(0, given[:, i] + ratio[:, i] * expected[0])
    assert_close(backward_recurrence(ratio, given), torch.stack(expected, dim=1), **EXACT)
    assert block_size(time) <= time


def test_mistakes_are_named():
    mean, diagonal, off = bands(2, 5, 3)
    with pytest.raises(ValueError, match=r"`off_diagonal` must have shape .* = \(2, 4, 3\), got \(2, 5, 3\)"):
        Posterior(mean, diagonal, diagonal)
    with pytest.raises(ValueError, match=r"`lengths` must lie in 0\.\.5 .* got 6 at index 1"):
        Posterior(mean, diagonal, off, torch.tensor([1, 6]))
    with pytest.raises(ValueError, match=r"`noise` must end in .* = \(2, 5, 3\), got \(2, 1, 3\)"):
        posterior().sample(normal(2, 1, 3))
    with pytest.raises(ValueError, match="`prior` must have as many steps as the posterior, 5, got 4"):
        posterior().kl(Prior().at(4))
