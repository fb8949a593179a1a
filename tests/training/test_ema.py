"""The moving average of the weights, by itself and in a run."""

import copy

import pytest
import torch
from torch import nn

from seq2tens.training import Callback, fit
from seq2tens.training.ema import EMA
from training.problems import QUIET, Script, Scripted, cross_entropy, order_task, recipe, train


def test_weights_are_exchanged_and_put_back_whatever_happens():
    model = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        model.weight.fill_(1.0)
    ema = EMA(model, 0.5)
    ema.update()  # the first one is a copy
    with torch.no_grad():
        model.weight.fill_(3.0)
    ema.update()
    decay = 2 / 11  # less than 0.5 at first

    def fail():
        with ema.in_place():
            assert model.weight.item() == pytest.approx(decay * 1 + (1 - decay) * 3)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert model.weight.item() == 3


def test_average_follows_its_formula():
    """A constant gradient moves the weight by the rate in every step: 1, 2, 3, … times 0.01."""
    model = Scripted()
    how = recipe(epochs=5, average=0.3, keep_best=False)
    fit(model, Script.loss, Script([1.0]), recipe=how, seed=0, **QUIET)
    expected = 0.01
    for n in range(1, 5):
        decay = min(0.3, (1 + n) / (10 + n))
        expected = decay * expected + (1 - decay) * 0.01 * (n + 1)
    assert float(model.weight.detach()) == pytest.approx(expected, rel=1e-4)


def test_average_is_what_is_validated_and_kept():
    seen = []

    class Spy(Callback):
        def epoch(self, row, model):
            seen.append(copy.deepcopy(model.state_dict()))

    how = recipe(epochs=6, average=0.9, monitor="validation_loss")
    data = order_task(40, seed=1)
    model, result = train(how, validation=data, callbacks=[Spy()])
    last = result.best
    with torch.no_grad():
        value = cross_entropy(model, data.tensors).mean
    assert float(value) == pytest.approx(last["validation_loss"], rel=1e-5)
    assert not torch.equal(model.head.weight, seen[result.best_epoch - 1]["head.weight"])
