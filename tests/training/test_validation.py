"""Losses and metrics of validation."""

import numpy as np
import torch
from lightning_fabric import Fabric
from torch import nn

from seq2tens.data import Sequences
from seq2tens.training import CrossEntropy, SequenceSource, TensorSource
from seq2tens.training.validation import ROWS, validate


class Means(nn.Module):
    """Logits from the mean over time; counts padded steps."""

    padding = 0

    def forward(self, values, lengths):
        lengths = torch.full((len(values),), values.shape[1]) if lengths is None else lengths
        self.padding += values.shape[0] * values.shape[1] - int(lengths.sum())
        return values.sum(dim=1) / lengths[:, None]


def unequal(n=3 * ROWS + 5):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(steps, 2)) for steps in rng.integers(1, 200, n)]
    labels = torch.from_numpy(rng.integers(0, 2, n))
    return Sequences.from_list(arrays), labels


def found(model, source):
    """The loss, and the outputs as a metric gets them."""
    kept = []

    def keep(*outputs):
        kept.extend(outputs)
        return 0.0

    loss = CrossEntropy(lambda model, batch: (model(batch.values, batch.lengths), batch.labels))
    told = validate(model, loss, source, {"kept": keep}, Fabric(devices=1), 1)
    return told["validation_loss"], kept


def test_rows_of_similar_length_go_together_and_come_back_in_order():
    sequences, labels = unequal()
    model = Means()
    mean, (logits, given) = found(model, SequenceSource(sequences, labels))
    assert torch.equal(given, labels)
    each = torch.tensor(np.stack([x.mean(axis=0) for x in sequences]), dtype=torch.float32)
    torch.testing.assert_close(logits, each)
    assert abs(mean - float(nn.functional.cross_entropy(each, labels))) < 1e-5
    assert model.padding < 0.3 * len(sequences.values)  # in the order of the source it would be about as much


def test_a_source_without_lengths_keeps_its_order():
    values, labels = torch.randn(ROWS + 3, 2, generator=torch.Generator().manual_seed(0)), torch.arange(2)
    labels = labels.repeat(ROWS)[: len(values)]
    seen = []

    def loss(model, batch):
        seen.append(batch[0])
        return CrossEntropy(lambda _, batch: batch)(model, batch)

    validate(Means(), loss, TensorSource(values, labels), {}, Fabric(devices=1), 1)
    assert torch.equal(torch.cat(seen), values)
