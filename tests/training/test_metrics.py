"""The mean loss of an epoch, and losses and metrics of validation."""

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric
from torch import nn

from seq2tens.data import Sequences
from seq2tens.training import CrossEntropy, Loss, NonFiniteLoss, SequenceSource, TensorSource, fit
from seq2tens.training.metrics import VALIDATION_ROWS, MeanLoss, validate
from training.problems import QUIET, Script, Scripted, accuracy, cross_entropy, make_model, order_task, recipe


class Means(nn.Module):
    """Logits from the mean over time; counts padded steps."""

    padding = 0

    def forward(self, values, lengths):
        lengths = torch.full((len(values),), values.shape[1]) if lengths is None else lengths
        self.padding += values.shape[0] * values.shape[1] - int(lengths.sum())
        return values.sum(dim=1) / lengths[:, None]


def unequal(n=6 * VALIDATION_ROWS + 5):
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
    values, labels = (
        torch.randn(VALIDATION_ROWS + 3, 2, generator=torch.Generator().manual_seed(0)),
        torch.arange(2),
    )
    labels = labels.repeat(VALIDATION_ROWS)[: len(values)]
    seen = []

    def loss(model, batch):
        seen.append(batch[0])
        return CrossEntropy(lambda _, batch: batch)(model, batch)

    validate(Means(), loss, TensorSource(values, labels), {}, Fabric(devices=1), 1)
    assert torch.equal(torch.cat(seen), values)


def test_the_mean_of_an_epoch_is_weighted_by_rows():
    mean = MeanLoss(Fabric(devices=1), epoch=1)
    assert mean.flush() == 0
    for value, rows in ((1.0, 3), (5.0, 1)):
        mean.add(Loss(torch.tensor(value), rows))
    assert mean.flush() == 2
    mean.add(Loss(torch.tensor(4.0), 4))
    assert mean.flush() == 1
    assert mean.mean() == (3 * 1 + 1 * 5 + 4 * 4) / 8


def test_metrics_need_outputs():
    with pytest.raises(ValueError, match="`loss` must return outputs as its third value"):
        fit(
            make_model(),
            lambda model, batch: cross_entropy(model, batch)[:2],
            order_task(),
            recipe=recipe(),
            seed=0,
            validation=order_task(),
            metrics={"accuracy": accuracy},
            **QUIET,
        )


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_is_named(value):
    with pytest.raises(NonFiniteLoss, match=f"finite, got {value} in epoch 3, batch 1;"):
        fit(Scripted(), Script.loss, Script([1, 1, value]), recipe=recipe(), seed=0, **QUIET)


def test_the_batch_is_named():
    data = order_task(48)
    data.tensors[0][17] = float("nan")
    with pytest.raises(NonFiniteLoss, match=r"got nan in epoch 1, batch [1-6];"):
        fit(make_model(), cross_entropy, data, recipe=recipe(), seed=0, **QUIET)


def test_weights_that_are_not_finite_are_noticed():
    def loss(model, batch):
        return (model(batch) - 1).sqrt(), 1  # 0 with an infinite derivative

    with pytest.raises(NonFiniteLoss, match="weights must be finite, got NaN or infinity in 'weight' after"):
        fit(Scripted(), loss, Script([1.0]), recipe=recipe(), seed=0, **QUIET)
