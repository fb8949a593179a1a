"""The evidence lower bound as a loss, and scores of held-out entries as metrics, for `training.fit`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from seq2tens.models.gpvae.model import GPVAE, Observed
from seq2tens.models.gpvae.sources import IncompleteBatch


class NegativeElbo:
    """Negative evidence lower bound of all observed entries, averaged over the sequences of a batch.

    Draws come from torch's global generator, which the training loop seeds. In evaluation mode, batches with
    hidden entries also return the outputs that `HELD_OUT_METRICS` need.

    Args:
        hide: maximum fraction of the observed entries that is hidden from the encoder. The fraction is drawn
            for each sequence, so that an encoder trained on complete sequences learns to handle incomplete
            ones. None: nothing is hidden.
    """

    def __init__(self, hide: float | None = None) -> None:
        self.hide = hide

    def __call__(self, model: nn.Module, batch: IncompleteBatch) -> tuple[Tensor, float, tuple[Tensor, ...]]:
        """Return the mean over the batch, the number of sequences, and outputs for metrics."""
        bound = model(batch.values, batch.observed, batch.lengths, visible=self._visible(batch))
        scored = batch.hidden is not None and not model.training
        outputs = held_out_scores(model, batch) if scored else ()
        return -bound.value.mean(), len(batch.values), outputs

    def _visible(self, batch: IncompleteBatch) -> Observed | None:
        if self.hide is None:
            return None
        part = self.hide * torch.rand(len(batch.values), 1, 1, device=batch.values.device)
        return batch.observed & (torch.rand_like(batch.values) >= part)


def held_out_scores(model: nn.Module, batch: IncompleteBatch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return sums of scores over the hidden entries of each sequence, and the number of these entries.

    As in the published tables, the negative log-likelihood is that of one draw of the latent path. Squared
    errors are those of the expected values at its mean: first as they are, then rounded to integers, which is
    how binary data are scored.
    """
    network = getattr(model, "module", model)
    assert isinstance(network, GPVAE)
    truth, hidden = batch.truth, batch.hidden
    assert truth is not None
    assert hidden is not None
    posterior = network.encode(batch.values, batch.observed, batch.lengths)
    draw = network.decoder(posterior.sample(torch.randn_like(posterior.mean)))
    expected = network.decoder.mean(network.decoder(posterior.mean))
    entries = (
        -network.decoder.log_density(draw, truth),
        (expected - truth).square(),
        (expected.round() - truth).square(),
    )
    nll, squared, rounded = (torch.where(hidden, entry, 0.0).sum((1, 2)) for entry in entries)
    return nll, squared, rounded, hidden.sum((1, 2))


def _per_entry(sums: Tensor, count: Tensor) -> float:
    return float(sums.double().sum() / count.sum())


HELD_OUT_METRICS: dict[str, Callable[..., float]] = {
    "nll": lambda nll, squared, rounded, count: _per_entry(nll, count),
    "mse": lambda nll, squared, rounded, count: _per_entry(squared, count),
    "rounded_mse": lambda nll, squared, rounded, count: _per_entry(rounded, count),
}
