"""Gaussian posteriors of latent paths, with tridiagonal precision."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2tens import _checks as check
from seq2tens.models.gpvae.priors import Factor
from seq2tens.models.gpvae.recurrence import backward_recurrence

LatentPath = Float[Tensor, "batch time latent"]


class Posterior:
    """N(m, A) for each sequence and latent dimension, with A⁻¹ = B Bᵀ and B lower bidiagonal.

    A draw z = m + B⁻ᵀ ε runs backwards in time: y_i = r_i y_{i+1} + ε_i / b_i with r_i = -c_i / b_i. Hence
    A_ij = A_jj r_i ⋯ r_{j-1} for i < j, which makes all computations possible without matrices.

    Args:
        mean: m.
        diagonal: b, the diagonal of B, greater than 0.
        off_diagonal: c below it, one step shorter; entry i couples steps i and i + 1.
        lengths: number of leading steps that count. The others are ignored: their mean is 0 and their part of
            B is the identity.
    """

    def __init__(
        self,
        mean: LatentPath,
        diagonal: LatentPath,
        off_diagonal: Float[Tensor, "batch time-1 latent"],
        lengths: Int[Tensor, " batch"] | None = None,
    ) -> None:
        check.sequences("mean", mean)
        check.not_empty("mean", mean)
        batch, time, latent = mean.shape
        check.shape("diagonal", diagonal, (batch, time, latent), "(batch, time, latent)")
        check.shape("off_diagonal", off_diagonal, (batch, time - 1, latent), "(batch, time - 1, latent)")
        inside = check.step_mask(mean, None, lengths)
        self.inside = inside
        if inside is not None:
            mean = torch.where(inside[..., None], mean, 0.0)
            diagonal = torch.where(inside[..., None], diagonal, 1.0)
            off_diagonal = torch.where(inside[:, 1:, None], off_diagonal, 0.0)
        self.mean, self.diagonal, self.off_diagonal = mean, diagonal, off_diagonal

    @property
    def lengths(self) -> Int[Tensor, " batch"]:
        """Number of steps of each sequence that count."""
        batch, time = self.mean.shape[:2]
        if self.inside is None:
            return torch.full((batch,), time, device=self.mean.device)
        return self.inside.sum(1)

    def log_determinant(self) -> Float[Tensor, "batch latent"]:
        """Return log det A."""
        return -2 * self.diagonal.log().sum(1)

    def variance(self) -> LatentPath:
        """Return the diagonal of A; 0 at steps that do not count."""
        squared = self._ratio().square()
        return self.clear(backward_recurrence(squared, self.diagonal.square().reciprocal()))

    def sample(self, noise: Float[Tensor, "*samples batch time latent"]) -> Tensor:
        """Return m + B⁻ᵀ ε for standard normal noise; 0 at steps that do not count."""
        check.require(
            tuple(noise.shape[-3:]) == tuple(self.mean.shape),
            f"`noise` must end in the axes (batch, time, latent) = {tuple(self.mean.shape)}, "
            f"got {tuple(noise.shape)}",
        )
        return self.clear(self.mean + backward_recurrence(self._ratio(), noise / self.diagonal))

    def kl(self, prior: Factor) -> Float[Tensor, "batch latent"]:
        """Return KL(q ‖ p) for a prior at the same steps, see `Prior.at`."""
        check.require(
            prior.time == self.mean.shape[1],
            f"`prior` must have as many steps as the posterior, {self.mean.shape[1]}, got {prior.time}",
        )
        lengths = self.lengths
        distance = self.clear(prior.whiten(self.mean)).square().sum(1)
        spread = prior.trace(self.variance(), self._ratio(), lengths)
        volume = prior.log_determinant(self.mean.shape[2], lengths) - self.log_determinant()
        return 0.5 * (distance + spread + volume - lengths[:, None])

    def _ratio(self) -> LatentPath:
        ratio = -self.off_diagonal / self.diagonal[:, :-1]
        return torch.nn.functional.pad(ratio, (0, 0, 0, 1))

    def clear(self, x: Tensor) -> Tensor:
        """Set steps that do not count to 0."""
        return x if self.inside is None else torch.where(self.inside[..., None], x, 0.0)
