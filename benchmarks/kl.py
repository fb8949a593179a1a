"""KL divergence of a posterior with tridiagonal precision from a Gaussian process, against dense algebra."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.distributions import MultivariateNormal, kl_divergence

from benchmarks.registry import Case, Prepare, Work, suite
from seq2tens.models.gpvae import Posterior, Prior
from seq2tens.models.gpvae.priors import Kernel

STEPS, LATENT = 1000, 64


class Bands(NamedTuple):
    """The mean and the precision factor of a posterior of one sequence."""

    mean: Tensor
    diagonal: Tensor
    off_diagonal: Tensor


def bands(dtype: torch.dtype, steps: int, latent: int, grad: bool) -> Bands:
    generator = torch.Generator().manual_seed(0)

    def draw(time: int) -> Tensor:
        return torch.randn(1, time, latent, generator=generator, dtype=dtype)

    drawn = Bands(draw(steps), 1.0 + draw(steps).exp(), 0.5 * draw(steps - 1))
    return Bands(*(tensor.requires_grad_(grad) for tensor in drawn))


def banded(given: Bands, prior: Prior) -> Callable[[], Tensor]:
    """`Posterior.kl`, with the prior factorised in advance."""
    factor = prior.at(given.mean.shape[1], dtype=given.mean.dtype)
    return lambda: Posterior(*given).kl(factor).sum()


def dense(given: Bands, prior: Prior) -> Callable[[], Tensor]:
    """torch's distributions with dense matrices; the prior is factorised in advance, too."""
    steps, dtype = given.mean.shape[1], given.mean.dtype
    root = torch.linalg.cholesky(prior.covariance(steps)[0]).to(dtype)
    centre = torch.zeros(steps, dtype=dtype)
    process = MultivariateNormal(centre, scale_tril=root, validate_args=False)

    def work() -> Tensor:
        factor = torch.diag_embed(given.diagonal.mT) + torch.diag_embed(given.off_diagonal.mT, offset=-1)
        precision = factor @ factor.mT
        posterior = MultivariateNormal(given.mean.mT, precision_matrix=precision, validate_args=False)
        return kl_divergence(posterior, process).sum()

    return work


def contender(
    make: Callable[[Bands, Prior], Callable[[], Tensor]], prior: Prior, dtype: torch.dtype, grad: bool
) -> Prepare:
    def prepare() -> Work:
        given = bands(dtype, STEPS, LATENT, grad)
        divergence = make(given, prior)
        return on_one_thread((lambda: torch.autograd.grad(divergence(), given)) if grad else divergence)

    return prepare


def on_one_thread(work: Work) -> Work:
    """Run on one thread, which other load on the machine disturbs least."""

    def alone() -> object:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return work()
        finally:
            torch.set_num_threads(threads)

    return alone


# Dense algebra takes seconds per call, so there are only a few cases.
CASES: tuple[tuple[Kernel, torch.dtype, bool], ...] = (
    ("cauchy", torch.float32, False),
    ("cauchy", torch.float64, False),
    ("cauchy", torch.float32, True),
    ("matern12", torch.float32, False),
)


@suite
def kl() -> Iterator[Case]:
    """KL of a GP-VAE's posterior from its prior, 1000 steps and 64 latent dimensions, on one thread."""
    for kernel, dtype, grad in CASES:
        prior = Prior(kernel, length_scale=2.0)
        what = "training" if grad else "forward"
        name = f"{str(dtype).removeprefix('torch.')} {what} {kernel} L={STEPS} latent={LATENT}"
        contenders = {
            "banded": contender(banded, prior, dtype, grad),
            "dense": contender(dense, prior, dtype, grad),
        }
        yield Case("kl", name, "banded", contenders)
