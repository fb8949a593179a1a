"""Epochs, one after the other."""

import pytest
import torch
from lightning_fabric import Fabric
from torch.optim import Adam, AdamW

from seq2tens.training import Cosine
from seq2tens.training.loop import Loop, make_optimizer
from seq2tens.training.progress import Progress
from training.problems import accuracy, cross_entropy, make_model, order_task, recipe


class Count(Progress):
    batches = 0

    def advance(self, batches):
        self.batches += batches


def make(how, validation=None):
    metrics = {} if validation is None else {"accuracy": accuracy}
    fabric = Fabric(accelerator="cpu", devices=1)
    return Loop(make_model(), cross_entropy, order_task(), how, 0, fabric, validation, metrics)


def test_an_epoch_is_a_row_and_a_snapshot():
    loop, count = make(recipe(), validation=order_task(20, seed=1)), Count()
    row = loop.epoch(count)
    assert list(row) == ["epoch", "train_loss", "validation_loss", "validation_accuracy", "rate", "seconds"]
    assert count.batches == loop.sampler.n_batches == 6
    assert loop.last["history"] == [row]
    weights = loop.state.model.state_dict()
    assert all(torch.equal(loop.last["model"][name], weights[name]) for name in weights)


def test_a_schedule_by_steps_moves_within_an_epoch():
    loop = make(recipe(schedule=Cosine(warmup=0.0)))
    rates = [loop.epoch(Progress())["rate"] for _ in range(2)]
    steps = loop.recipe.epochs * loop.sampler.n_batches
    assert rates == pytest.approx([0.01 * Cosine(warmup=0.0).at(step, steps) for step in (0, 6)])


@pytest.mark.parametrize(("name", "kind"), [("adam", Adam), ("adamw", AdamW)])
def test_the_optimiser_of_the_recipe(name, kind):
    model = make_model()
    model.head.weight.requires_grad_(False)
    optimizer = make_optimizer(model, recipe(optimizer=name, weight_decay=0.1), fused=False)
    assert type(optimizer) is kind
    (group,) = optimizer.param_groups
    assert (group["lr"], group["weight_decay"]) == (0.01, 0.1)
    assert all(parameter is not model.head.weight for parameter in group["params"])
