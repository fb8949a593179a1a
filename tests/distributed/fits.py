"""Training in several processes beside training in one, in double precision."""

import os

import torch
import torch.distributed as dist
from torch import nn

from seq2tens.distributed.synchronized import Peers, synchronized
from seq2tens.nn import FCNLS2T, LevelNorm, MaskedBatchNorm
from seq2tens.training import CrossEntropy, Recipe, TensorSource, fit

ROWS = 21
RECIPES = {
    "uneven batches": {"batch_size": 8, "clip_norm": 0.5, "label_smoothing": 0.1},
    "fewer rows than processes": {"batch_size": 2, "epochs": 1},
    "one row at a time": {"batch_size": 1, "epochs": 1},
    "average and patience": {
        "epochs": 6,
        "average": 0.9,
        "monitor": "validation_loss",
        "patience": 2,
        "learning_rate": 0.1,
    },
    "buckets": {"sampling": "buckets", "class_weights": True, "optimizer": "adamw"},
}


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = FCNLS2T(2, 3, 4, 2)
        self.head = nn.Linear(self.features.out_features, 2)

    def forward(self, x, lengths):
        return self.head(self.features(x, lengths=lengths))


def forward(model, batch):
    x, lengths, labels, weights = batch
    return model(x, lengths), labels, weights


def source(seed=0):
    """Sequences of unequal lengths, padded, with labels and weights."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(ROWS, 15, 2, generator=generator).double()
    lengths = torch.randint(4, 16, (ROWS,), generator=generator)
    labels = torch.arange(ROWS) % 2
    x[:, 3] += labels[:, None]
    weights = torch.rand(ROWS, generator=generator).double() + 0.5
    return TensorSource(x, lengths, labels, weights, labels=labels, lengths=lengths)


def train(name, **options):
    """Weights and history."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Classifier().double()
    recipe = Recipe(**{"epochs": 2, "batch_size": 8, "learning_rate": 1e-2} | RECIPES[name])
    data = options.pop("data", source())
    loss = CrossEntropy.of(recipe, forward, data.labels)
    result = fit(model, loss, data, recipe=recipe, seed=0, validation=source(1), progress="silent", **options)
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in result.history]
    return model.state_dict(), rows


def make_fabric(rank, ranks):
    from lightning_fabric import Fabric

    os.environ |= {"LOCAL_RANK": str(rank), "NODE_RANK": "0", "MASTER_PORT": "0"}
    fabric = Fabric(accelerator="cpu", devices=ranks, strategy="ddp")
    fabric.launch()
    return fabric


def trained_together(rank, ranks, folder):
    """The results of all recipes, each also from its checkpoint, and that norms work alone afterwards."""
    fabric, results = make_fabric(rank, ranks), {}
    for name in RECIPES:
        weights, rows = train(name, fabric=fabric, checkpoint=folder / name)
        again, same_rows = train(name, fabric=fabric, checkpoint=folder / name)
        assert all(torch.equal(weights[key], again[key]) for key in weights)
        assert rows == same_rows
        results[name] = ({key: tensor.numpy() for key, tensor in weights.items()}, rows)
    return results


def different_data(rank, ranks):
    """What is said where a process has other rows, or more of them."""
    fabric = make_fabric(rank, ranks)
    data = source()
    if rank == 1:
        data = TensorSource(
            *(t[:-1] for t in data.tensors), labels=data.labels[:-1], lengths=data.lengths[:-1]
        )
    try:
        train("uneven batches", fabric=fabric, data=data)
    except ValueError as error:
        return str(error)
    return "nothing"


def norm_errors(rank, ranks):
    """Differences of outputs, gradients and statistics from those of all rows in one process."""
    errors = {}
    for shares in ([4, 0, 9, 1], [5, 5, 5, 5]):
        for masked in (False, True):
            for kind in ("channels", "levels", "plain"):
                errors[f"{shares} {masked} {kind}"] = _norm_error(rank, shares[:ranks], masked, kind)
    return errors


def _norm_error(rank, shares, masked, kind):
    generator = torch.Generator().manual_seed(3)
    shape = (sum(shares), 3, 2) if kind == "levels" else (sum(shares), 3)
    x = 1e3 + torch.randn(shape, generator=generator).double()  # far from 0: squares must not cancel
    mask = torch.rand(len(x), generator=generator) < 0.6 if masked else None
    slopes = torch.randn(shape, generator=generator).double()
    everyone = _apply(kind, x, mask, slopes)
    inside = slice(sum(shares[:rank]), sum(shares[: rank + 1]))
    peers = Peers()
    part = None if mask is None else mask[inside]
    if shares[rank] == 0:  # takes part with rows that count for nothing
        with peers.absent():
            _, _, parameters, running = _apply(kind, 7 * x[:1], None, 0 * slopes[:1], peers)
        rows = []
    else:
        y, dx, parameters, running = _apply(kind, x[inside], part, slopes[inside], peers)
        rows = [(y, everyone[0][inside]), (dx, everyone[1][inside])]
    for parameter in parameters:
        dist.all_reduce(parameter)
    pairs = [*rows, *zip(parameters, everyone[2], strict=True), *zip(running, everyone[3], strict=True)]
    return max(float((a - b).abs().max()) for a, b in pairs)


def _apply(kind, x, mask, slopes, peers=None):
    norm = LevelNorm(3) if kind == "levels" else MaskedBatchNorm(3, affine=kind == "channels")
    norm.double()
    if norm.weight is not None:
        norm.weight.data.copy_(torch.tensor([0.5, 1.0, 2.0]))
    x = x.clone().requires_grad_()
    if peers is None:
        y = norm(x, mask)
    else:
        with synchronized(norm, peers):
            y = norm(x, mask)
        assert norm.peers is None
    (y * slopes).sum().backward()
    return y.detach(), x.grad, [p.grad for p in norm.parameters()], list(norm.buffers())
