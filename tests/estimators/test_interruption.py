"""Ctrl-C in a fit: what was learned so far is kept."""

import numpy as np
import pytest
import torch

from estimator_contract import problem
from seq2tens.estimators import DeepLS2TClassifier, GPVAEImputer, LS2TImputer, load
from seq2tens.estimators.interruption import InterruptedFitWarning
from seq2tens.training import Checkpoints
from seq2tens.training.state import State


class Interrupting(Checkpoints):
    """Ends a fit after the third epoch has been saved."""

    def write(self, epoch, saved):
        new = not any(self.folder.glob(f"epoch-{epoch:06d}.*"))
        path = super().write(epoch, saved)
        if epoch == 3 and new:
            raise KeyboardInterrupt
        return path


def small(**changes):
    sizes = {"width": 4, "depth": 1, "batch_size": 8}
    return DeepLS2TClassifier(**{"epochs": 7, "device": "cpu", "random_state": 0, **sizes, **changes})


def test_leaves_a_classifier_that_can_be_used_and_saved(tmp_path):
    X, y = problem()
    model = small(checkpoint=Interrupting(tmp_path / "state", seconds=0))
    with pytest.warns(
        InterruptedFitWarning, match="`fit` was interrupted after 3 epochs; its weights are"
    ) as warned:
        assert model.fit(X, y) is model
    assert warned[0].filename == __file__
    assert model.interrupted_
    assert len(model.history_) == 3
    model.checkpoint = None
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.interrupted_
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert not model.set_params(epochs=2).fit(X, y).interrupted_


def test_keeps_the_best_weights_where_there_is_validation(monkeypatch):
    X, y = problem()
    options = {"epochs": 30, "validation_fraction": 0.25, "learning_rate": 0.3, "scaling": "channel"}
    kept = {}
    record = State.record

    def interrupting(state, row, recipe):
        record(state, row, recipe)
        kept.setdefault(state.best_epoch, state.result_weights())
        if state.epoch == 20:
            raise KeyboardInterrupt

    monkeypatch.setattr(State, "record", interrupting)
    with pytest.warns(InterruptedFitWarning, match="after 19 epochs; its weights are the best so far"):
        model = small(**options).fit(X, y)
    losses = [row["validation_loss"] for row in model.history_]
    best = losses.index(min(losses)) + 1
    assert best < 19
    weights = model.network_.state_dict()
    assert all(torch.equal(weights[name], tensor) for name, tensor in kept[best].items())


def test_before_the_end_of_an_epoch_it_is_passed_on(monkeypatch):
    X, y = problem()

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(State, "record", interrupt)
    model = small()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not model.is_fitted


def test_imputers_can_be_used_as_well(tmp_path):
    X, _ = problem()
    sizes = {"latent": 2, "encoder_sizes": (4, 4), "decoder_sizes": (4,), "device": "cpu", "random_state": 0}
    model = GPVAEImputer(epochs=7, checkpoint=Interrupting(tmp_path / "state", seconds=0), **sizes)
    with pytest.warns(
        InterruptedFitWarning, match="after 3 epochs; its weights are those of the last epoch"
    ) as warned:
        model.fit(X)
    assert warned[0].filename == __file__
    assert model.interrupted_
    model.checkpoint = None
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").interrupted_


def test_an_imputer_that_was_interrupted_knows_its_intervals(tmp_path):
    X, _ = problem()
    for x in X:
        x[0, 0] = np.nan
    sizes = {"width": 4, "functionals": 2, "depth": 1, "device": "cpu", "random_state": 0}
    model = LS2TImputer(epochs=7, checkpoint=Interrupting(tmp_path / "state", seconds=0), **sizes)
    with pytest.warns(
        InterruptedFitWarning, match="after 3 epochs; its weights are the best so far"
    ) as warned:
        model.fit(X)
    assert warned[0].filename == __file__
    assert model.interrupted_
    low, high = model.predict_interval(X)
    assert all((a[0, 0] < b[0, 0]) for a, b in zip(low, high, strict=True))
