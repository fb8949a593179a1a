"""Our GRU-D against the layers of PyPOTS."""

import torch
from torch import nn
from torch.testing import assert_close

from models.irregular.pypots_gru_d import PyPOTSGRUD
from models.irregular.stays import CHANNELS, EXACT, STATIC, batch, build, stays

WIDTH = 4


def theirs(n_static=STATIC):
    torch.manual_seed(0)
    return PyPOTSGRUD(CHANNELS, n_static, width=WIDTH).double().eval()


def test_rows_do_not_depend_on_each_other():
    network, sequences = theirs(), stays()
    together = network(batch(sequences))
    for i in range(4):
        assert_close(network(batch(sequences, [i])), together[i : i + 1], **EXACT)


@torch.no_grad()
def test_gru_d_is_that_of_pypots():
    """With irregular times and unequal lengths, once the state is no input to theirs."""
    network, layers = build("gru-d", n_static=0), (other := theirs(0)).layers
    nn.init.zeros_(network.initial.bias)
    layers.temp_decay_x.W.copy_(network.input_rate.diag())
    layers.temp_decay_x.b.copy_(network.input_offset)
    layers.temp_decay_h.W.copy_(network.state_rate.weight)
    layers.temp_decay_h.b.copy_(network.state_rate.bias)
    for name, value in network.cell.named_parameters():
        getattr(layers.rnn_cell, name).copy_(value) if name != "weight_ih" else None
    values, mask = network.cell.weight_ih.split(CHANNELS, dim=1)
    layers.rnn_cell.weight_ih.copy_(torch.cat([values, torch.zeros(3 * WIDTH, WIDTH), mask], dim=1))
    given = batch(stays(n_static=0))
    assert_close(other.summarize(other.read(given)), network.summarize(network.read(given)), **EXACT)
