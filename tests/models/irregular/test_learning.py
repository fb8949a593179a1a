"""Every network learns with the training loop, from made-up sequences and from real ones."""

import numpy as np
import pytest
import torch

from models.irregular.stays import CHANNELS, SMALL
from seq2tens.data import Sequences, physionet2012
from seq2tens.models.irregular import NETWORKS, IrregularScaler, IrregularSource
from seq2tens.training import CrossEntropy, Recipe, fit

every_network = pytest.mark.parametrize("name", NETWORKS)


def loss(model, batch):
    """Cross-entropy, and in training what the network asks for besides."""
    value = CrossEntropy(lambda model, batch: (model(batch[0]), batch[1]))(model, batch)
    if model.training and hasattr(model, "auxiliary_loss"):
        return value._replace(mean=value.mean + model.auxiliary_loss(batch[0]))
    return value


def accuracy(logits, labels):
    return float((logits.argmax(1) == labels).float().mean())


def sign_task(n=64, seed=0):
    """The class is the sign of the first channel, seen a few times at random hours among noise and gaps."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    arrays, times = [], []
    for label in labels:
        array = rng.normal(size=(rng.integers(4, 9), CHANNELS))
        array[:, 0] = (2 * label - 1) + 0.3 * array[:, 0]
        array[rng.random(array.shape) < 0.3] = np.nan
        array[0, 0] = 2.0 * label - 1
        arrays.append(array)
        times.append(np.sort(rng.uniform(0, 48, len(array))))
    return Sequences.from_list(arrays, times, rng.normal(size=(n, 2))), labels


def train(name, epochs, **options):
    sequences, labels = sign_task()
    source = IrregularSource(IrregularScaler().fit(sequences).transform(sequences), labels)
    torch.manual_seed(0)
    network = NETWORKS[name](CHANNELS, 2, **SMALL[name] | {"dropout": 0.0} | options)
    recipe = Recipe(epochs=epochs, batch_size=16, learning_rate=2e-2, sampling="balanced")
    result = fit(
        network, loss, source, recipe=recipe, seed=0, validation=source, metrics={"accuracy": accuracy},
        progress="silent",
    )  # fmt: skip
    return network, result


@every_network
def test_networks_learn(name):
    _, result = train(name, 25)
    assert max(row["validation_accuracy"] for row in result.history) > 0.9


@pytest.mark.parametrize("name", ["ip-nets", "latent-ode"])
def test_training_with_noise_can_be_repeated(name):
    (one, first), (other, second) = (train(name, 2) for _ in range(2))
    assert [row["train_loss"] for row in first.history] == [row["train_loss"] for row in second.history]
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.fixture(scope="module")
def real():
    stays = physionet2012.load().train
    rows = np.concatenate([np.flatnonzero(np.asarray(stays.labels) == label)[:32] for label in (0, 1)])
    sequences = stays.sequences[rows]
    return IrregularSource(
        IrregularScaler().fit(sequences).transform(sequences), np.asarray(stays.labels)[rows]
    )


@pytest.mark.data("physionet2012")
@every_network
def test_real_stays_are_learned(name, real):
    torch.manual_seed(0)
    network = NETWORKS[name](37, 7)
    recipe = Recipe(epochs=3, batch_size=32, learning_rate=3e-3, sampling="balanced")
    result = fit(network, loss, real, recipe=recipe, seed=0, progress="silent")
    assert result.history[-1]["train_loss"] < result.history[0]["train_loss"]
