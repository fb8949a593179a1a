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


def banded(parameters: Bands, prior: Prior) -> Callable[[], Tensor]:
    """`Posterior.kl`, with the prior factorised in advance."""
    factor = prior.at(parameters.mean.shape[1], dtype=parameters.mean.dtype)
    return lambda: Posterior(*parameters).kl(factor).sum()


def dense(parameters: Bands, prior: Prior) -> Callable[[], Tensor]:
    """torch's distributions with dense matrices; the prior is factorised in advance, too."""
    steps, dtype = parameters.mean.shape[1], parameters.mean.dtype
    root = torch.linalg.cholesky(prior.covariance(steps)[0]).to(dtype)
    center = torch.zeros(steps, dtype=dtype)
    process = MultivariateNormal(center, scale_tril=root, validate_args=False)

    def work() -> Tensor:
        diagonal, off_diagonal = parameters.diagonal.mT, parameters.off_diagonal.mT
        factor = torch.diag_embed(diagonal) + torch.diag_embed(off_diagonal, offset=-1)
        precision = factor @ factor.mT
        posterior = MultivariateNormal(parameters.mean.mT, precision_matrix=precision, validate_args=False)
        return kl_divergence(posterior, process).sum()

    return work


def contender(
    make: Callable[[Bands, Prior], Callable[[], Tensor]], prior: Prior, dtype: torch.dtype, grad: bool
) -> Prepare:
    def prepare() -> Work:
        parameters = bands(dtype, STEPS, LATENT, grad)
        divergence = make(parameters, prior)
        return on_one_thread((lambda: torch.autograd.grad(divergence(), parameters)) if grad else divergence)

    return prepare


def on_one_thread(work: Work) -> Work:
    """Run on one thread, which other load on the machine disturbs least."""

    def wrapped() -> object:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return work()
        finally:
            torch.set_num_threads(threads)

    return wrapped


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
        computation = "training" if grad else "forward"
        name = f"{str(dtype).removeprefix('torch.')} {computation} {kernel} L={STEPS} latent={LATENT}"
        contenders = {
            "banded": contender(banded, prior, dtype, grad),
            "dense": contender(dense, prior, dtype, grad),
        }
        yield Case("kl", name, "banded", contenders)
