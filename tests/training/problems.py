"""Small real problems: which of two bumps comes first?"""

import torch
from torch import nn

from seq2tens.nn import DeepLS2T
from seq2tens.training import CrossEntropy, Recipe, TensorSource, fit

QUIET = {"progress": "silent"}


class Classifier(nn.Module):
    def __init__(self, width=6, depth=2, dropout=0.2, **options):
        super().__init__()
        self.features = DeepLS2T(2, width, depth, **options)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(self.features.out_features, 2)

    def forward(self, x):
        return self.head(self.dropout(self.features(x)))


def order_task(n=48, length=12, seed=0):
    """Sequences with a bump in each of two channels; the class is the channel that has its bump first."""
    generator = torch.Generator().manual_seed(seed)
    x = 0.1 * torch.randn(n, length, 2, generator=generator)
    for i in range(n):
        early, late = torch.randperm(length, generator=generator)[:2].sort().values
        x[i, early, i % 2] += 1
        x[i, late, 1 - i % 2] += 1
    y = torch.arange(n) % 2
    return TensorSource(x, y, labels=y, lengths=torch.full((n,), length))


def make_model(seed=0, **options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Classifier(**options)


def forward(model, batch):
    x, y = batch
    return model(x), y


def cross_entropy(model, batch):
    return CrossEntropy(forward)(model, batch)


def accuracy(logits, labels):
    return float((logits.argmax(1) == labels).float().mean())


def recipe(**changes):
    return Recipe(**{"epochs": 4, "batch_size": 8, "learning_rate": 1e-2} | changes)


def train(how, *, seed=0, model=None, source=None, **options):
    """The trained model and the result, on the order task."""
    model = make_model() if model is None else model
    loss = CrossEntropy.of(how, forward, order_task().labels)
    result = fit(model, loss, source or order_task(), recipe=how, seed=seed, **(QUIET | options))
    return model, result


def same_weights(a, b):
    ours, theirs = a.state_dict(), b.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[k], theirs[k]) for k in ours)


class Scripted(nn.Module):
    """A model whose loss in each epoch is given; its one weight counts the epochs by a gradient of -1."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, value):
        return value - (self.weight - self.weight.detach())


class Script:
    """A source and loss for `Scripted`: one batch per epoch, whose loss is the next of a list."""

    def __init__(self, losses):
        self.losses, self.at = losses, 0

    def __len__(self):
        return 1

    def batch(self, rows):
        self.at += 1
        return torch.tensor(float(self.losses[min(self.at, len(self.losses)) - 1]))

    @staticmethod
    def loss(model, batch):
        return model(batch), 1
