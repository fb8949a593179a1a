import numpy as np
import pytest
import torch

from estimator_contract import ClassifierContract, problem
from seq2tens.experiments.baselines import MLSTMFCN, MLSTMFCNClassifier
from seq2tens.experiments.baselines.mlstm_fcn import LastState, SqueezeExcitation

QUICK = {"epochs": 2, "batch_size": 8, "device": "cpu", "width": 4, "cells": 3}


class TestMLSTMFCN(ClassifierContract):
    def make(self, **changes):
        return MLSTMFCNClassifier(**{"random_state": 0, **QUICK, **changes})

    def thorough(self):
        return self.make(epochs=20, batch_size=12, learning_rate=1e-2, scaling="channel")


def batch(generator, lengths=(5, 9, 1), channels=2, padding=7.0):
    x = torch.full((len(lengths), 9, channels), padding)
    for row, length in zip(x, lengths, strict=True):
        row[:length] = torch.randn(length, channels, generator=generator)
    return x, torch.tensor(lengths)


def test_parameters():
    """Those of the FCN with 128 filters, of two bottlenecks, and of an LSTM with torch's two biases."""
    network = MLSTMFCN(3)
    excitations, lstm = 2 * (128 * 8 + 256 * 16), 4 * 8 * (3 + 8 + 2)
    assert sum(p.numel() for p in network.parameters()) == 266_752 + excitations + lstm
    assert network.out_features == 136


def test_each_sequence_alone_gives_the_same(generator):
    x, lengths = batch(generator)
    network = MLSTMFCN(2, width=8, cells=4).eval()
    together = network(x, lengths=lengths)
    alone = torch.cat([network(row[None, :length]) for row, length in zip(x, lengths, strict=True)])
    torch.testing.assert_close(together, alone)


def test_masked_steps_are_as_if_absent(generator):
    x = torch.randn(2, 8, 2, generator=generator)
    mask = torch.tensor([[True, False, True, True, False, True, True, True], [True] * 8])
    network = MLSTMFCN(2, width=8, cells=4).eval()
    torch.testing.assert_close(network(x, mask)[:1], network(x[:1, mask[0]]))


def test_the_last_state_is_that_of_a_packed_sequence(generator):
    x, lengths = batch(generator)
    module = LastState(2, 4)
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    _, (expected, _) = module.lstm(packed)
    mask = torch.arange(9) < lengths[:, None]
    torch.testing.assert_close(module(x, mask), expected[0])
    assert not module(x, torch.zeros_like(mask)).any()


def test_excitation_is_one_factor_per_channel(generator):
    x = torch.randn(2, 5, 32, generator=generator)
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    module = SqueezeExcitation(32)
    gates = module(x, mask) / x
    torch.testing.assert_close(gates, gates[:, :1].expand_as(gates))
    assert ((gates > 0) & (gates < 1)).all()
    torch.testing.assert_close(module(x, mask)[1:, :2], module(x[1:, :2]))


def test_dropout_is_for_the_lstm_only(generator):
    x, lengths = batch(generator)
    network = MLSTMFCN(2, width=8, cells=4, dropout=0.9)
    for module in network.convolutions:
        module.norm.eval()
    first, second = network(x, lengths=lengths), network(x, lengths=lengths)
    torch.testing.assert_close(first[:, :8], second[:, :8])
    assert (first[:, 8:] == 0).sum() > (network.eval()(x, lengths=lengths)[:, 8:] == 0).sum()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 0}, "`width` must be at least 1, got 0"),
        ({"cells": 0}, "`cells` must be at least 1, got 0"),
        ({"dropout": 1.0}, r"`dropout` must lie in \[0, 1\), got 1.0"),
    ],
)
def test_wrong_arguments_are_told_at_fit(change, message):
    with pytest.raises(ValueError, match=message):
        MLSTMFCNClassifier(**{**QUICK, **change}).fit(*problem())


def test_it_learns():
    X, y = problem(n=60)
    test, truth = problem(n=60, seed=9)
    model = MLSTMFCNClassifier(
        **{**QUICK, "epochs": 40, "learning_rate": 1e-2}, scaling="channel", random_state=0
    )
    assert model.fit(X, y).score(test, truth) > 0.9
    assert np.isfinite([row["train_loss"] for row in model.history_]).all()
