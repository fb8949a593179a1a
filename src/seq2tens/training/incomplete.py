"""Training on sequences with missing entries: batches that keep them apart, and the bound as a loss."""

from __future__ import annotations

import hashlib
from collections.abc import Sized
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seq2tens.data import Incomplete, Sequences
from seq2tens.models.gpvae import GPVAE
from seq2tens.training.losses import Loss
from seq2tens.training.sources import Steps
from seq2tens.training.validation import Metric


class IncompleteBatch(NamedTuple):
    """Sequences with 0 where nothing was observed; `lengths` is None if there is no padding.

    For scores `truth` has more entries than were observed, those that are `hidden` among them; otherwise both
    are None.
    """

    values: Float[Tensor, "rows time channels"]
    observed: Bool[Tensor, "rows time channels"]
    lengths: Int[Tensor, " rows"] | None = None
    truth: Float[Tensor, "rows time channels"] | None = None
    hidden: Bool[Tensor, "rows time channels"] | None = None


class Part(Sized, Protocol):
    """`Incomplete`, or data that becomes it a few rows at a time."""

    def __getitem__(self, rows: np.ndarray, /) -> Incomplete: ...


class IncompleteSource:
    """Sequences of one length, made when they are asked for.

    Args:
        part: `Incomplete`, or anything that gives it for some rows, such as `TurningDigits`.
        scored: batches have what is needed to score an imputation.
    """

    def __init__(self, part: Part, *, scored: bool = False) -> None:
        self.part, self.scored = part, scored

    def __len__(self) -> int:
        return len(self.part)

    def batch(self, rows: Tensor) -> IncompleteBatch:
        """The chosen rows."""
        chosen = self.part[rows.numpy()]
        values, observed = torch.from_numpy(chosen.values), torch.from_numpy(chosen.observed)
        if not self.scored:
            return IncompleteBatch(values, observed)
        hidden = chosen.hidden
        truth = np.where(hidden, chosen.truth, np.float32(0))
        return IncompleteBatch(values, observed, None, torch.from_numpy(truth), torch.from_numpy(hidden))


class RaggedSource:
    """Sequences of unequal length with NaN where nothing was observed."""

    def __init__(self, sequences: Sequences) -> None:
        values = torch.tensor(sequences.values, dtype=torch.float32)
        self.observed = ~values.isnan()
        self.steps = torch.where(self.observed, values, 0.0)
        self.starts, self.lengths = torch.tensor(sequences.offsets[:-1]), torch.tensor(sequences.lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, rows: Tensor) -> IncompleteBatch:
        """The chosen rows."""
        places = Steps.of(rows, self.starts, self.lengths)
        return IncompleteBatch(places.gather(self.steps), places.gather(self.observed), places.lengths)

    @cached_property
    def digest(self) -> str:
        """A hash of all there is."""
        total = hashlib.sha256()
        for tensor in (self.steps, self.observed, self.lengths):
            total.update(tensor.contiguous().numpy().tobytes())
        return total.hexdigest()


class NegativeElbo:
    """Minus the evidence lower bound of a `GPVAE`, the mean over the sequences of a batch.

    Draws of the latent path come from torch's global generator, which the training loop seeds. In evaluation
    of batches that can be scored, the outputs are what `HELD_OUT_METRICS` are made of.
    """

    def __call__(self, model: nn.Module, batch: IncompleteBatch) -> Loss:
        """The mean over the batch."""
        bound = model(batch.values, batch.observed, batch.lengths)
        scored = batch.hidden is not None and not model.training
        outputs = held_out_scores(model, batch) if scored else ()
        return Loss(-bound.value.mean(), len(batch.values), outputs)


def held_out_scores(model: nn.Module, batch: IncompleteBatch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sums over the hidden entries of each sequence, and how many there are.

    As in the published tables the negative log-likelihood is that of one draw of the latent path, and squared
    errors are those of the values expected at its mean: first as they are, then rounded to whole numbers,
    which is how binary data is scored.
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


HELD_OUT_METRICS: dict[str, Metric] = {
    "nll": lambda nll, squared, rounded, count: _per_entry(nll, count),
    "mse": lambda nll, squared, rounded, count: _per_entry(squared, count),
    "rounded_mse": lambda nll, squared, rounded, count: _per_entry(rounded, count),
}
