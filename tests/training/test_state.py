"""Snapshots of a run, and which epoch is the best."""

import pytest
import torch
from lightning_fabric.plugins import Precision
from torch import nn
from torch.optim import Adam

from seq2tens.training.ema import EMA
from seq2tens.training.state import State
from training.problems import recipe


def make(ema=True):
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = Adam(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    return State(model, optimizer, scheduler, EMA(model, 0.5) if ema else None, Precision())


def step(state):
    state.model(torch.ones(1, 2)).sum().backward()
    state.optimizer.step()
    state.optimizer.zero_grad()
    state.scheduler.step()
    if state.ema is not None:
        state.ema.update()


@pytest.mark.parametrize("ema", [False, True])
def test_a_run_goes_on_from_a_snapshot_as_it_did(ema):
    state = make(ema)
    step(state)
    state.record({"train_loss": 1.0}, recipe())
    before = state.snapshot()
    ends = []
    for _ in range(2):
        step(state)
        state.record({"train_loss": 0.5}, recipe())
        ends.append(state.snapshot())
        state.restore(before)
    torch.testing.assert_close(ends[0], ends[1], rtol=0, atol=0)
    assert (state.epoch, state.best_epoch) == (1, 1)


def test_a_snapshot_shares_no_memory_with_the_run():
    state = make()
    step(state)
    snapshot = state.snapshot()
    moments = snapshot["optimizer"]["state"][0]["exp_avg"].clone()
    step(state)
    assert torch.equal(snapshot["optimizer"]["state"][0]["exp_avg"], moments)


@pytest.mark.parametrize(("mode", "best"), [("min", 2), ("max", 3)])
def test_the_best_epoch_and_its_weights(mode, best):
    state, weights = make(ema=False), []
    how = recipe(mode=mode, patience=2)
    for loss in (2.0, 1.0, 3.0, 2.5, 2.5):
        if state.stopped:
            break
        step(state)
        weights.append(state.model.weight.detach().clone())
        state.record({"train_loss": loss}, how)
    assert state.best_epoch == best
    assert state.stopped == ("patience" if mode == "min" else "epochs")
    state.finish()
    assert torch.equal(state.model.weight, weights[best - 1])
    assert not state.model.training
