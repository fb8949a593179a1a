"""GRU-Simple, GRU-D and Phased LSTM against networks of torch and against their equations."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from models.irregular.stays import CHANNELS, EXACT, STATIC, batch, build, stays
from seq2tens.data import Sequences
from seq2tens.models.irregular.phased_lstm import LEAK, TimeGate
from seq2tens.models.irregular.readings import read
from seq2tens.models.irregular.recurrent import DropoutGRU


def complete(times=None):
    """Two sequences in which everything was observed."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(5, CHANNELS)) for _ in range(2)]
    return batch(Sequences.from_list(arrays, times or [np.sort(rng.uniform(0, 48, 5)) for _ in range(2)]))


def with_mask(given):
    return torch.cat([given.values, torch.ones_like(given.values)], dim=-1)


def copy_cell(cell, layer):
    """The weights of a cell, in a layer of one direction."""
    with torch.no_grad():
        for name, value in cell.named_parameters():
            getattr(layer, f"{name}_l0").copy_(value)
    return layer


def test_gru_simple_reads_values_masks_and_gaps():
    network, given = build("gru-simple", n_static=0), complete()
    gaps = given.times.diff(dim=1, prepend=given.times[:, :1])[..., None].expand_as(given.values) / 48
    rows = torch.cat([with_mask(given), gaps], dim=-1)
    states = network.recurrent(rows, network.initial.bias.tanh().expand(2, -1))
    assert_close(network.summarize(network.read(given)), states[:, -1], **EXACT)


def test_gru_simple_of_the_published_table_reads_zeros_and_raw_hours():
    options = {"fill": "zero", "horizon": 1.0}
    network, given = build("gru-simple", n_static=0, **options), batch(stays(n_static=0))
    readings = network.read(given)
    assert (readings.values[~readings.observed] == 0).all()
    rows = torch.cat([readings.values, readings.observed.double(), readings.gaps()], dim=-1)
    for i, length in enumerate(given.lengths):
        initial = network.initial.bias.tanh()[None]
        state = network.recurrent(rows[i : i + 1, :length], initial)[0, -1]
        assert_close(network.summarize(readings)[i], state, **EXACT)


def test_recurrent_dropout_is_the_same_at_all_steps():
    """Units that the gates of a sequence do not see are carried on all the same."""
    torch.manual_seed(0)
    layer, rows, initial = DropoutGRU(3, 5).double(), torch.randn(2, 7, 3).double(), torch.rand(2, 5).double()
    seen = torch.ones(2, 5).double()
    assert_close(layer.masked(rows, initial, seen), layer(rows, initial), **EXACT)
    seen[:, 1] = 0
    without = layer.masked(rows, initial, seen)
    with torch.no_grad():
        layer.weight_hh_l0[:, 1] = 0
    assert_close(without, layer(rows, initial), **EXACT)
    assert without[:, 0, 1].abs().min() > 0


@pytest.mark.parametrize("rate", ["input_dropout", "recurrent_dropout"])
@pytest.mark.parametrize("name", ["gru-simple", "gru-d", "ip-nets"])
def test_dropout_of_recurrent_networks_is_for_training(name, rate):
    network, given = build(name, dropout=0.0, **{rate: 0.5}), batch(stays())
    plain = build(name, dropout=0.0)(given)
    assert_close(network(given), plain, **EXACT)
    network.train()
    assert (network(given) - network(given)).abs().max() > 1e-4
    network(given).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())


def test_phased_lstm_of_the_published_table_reads_zeros_and_raw_hours():
    network = build("phased-lstm", n_static=0, fill="zero", since_observed=True)
    given = batch(stays(n_static=0))
    readings = network.read(given)
    rows = torch.cat([readings.values, readings.observed.double(), readings.gaps()], dim=-1)
    output = memory = torch.zeros(4, 4).double()
    output = network.initial.bias.tanh().expand(4, -1)
    states = []
    for step in range(rows.shape[1]):
        openness = network.gate(readings.times[:, step])
        new = network.cell(rows[:, step], (output, memory))
        output, memory = (old + openness * (n - old) for old, n in zip((output, memory), new, strict=True))
        states.append(output)
    assert_close(network.summarize(readings), readings.last(torch.stack(states, 1)), **EXACT)


def test_gru_d_without_decay_is_a_gru():
    network, given = build("gru-d", n_static=0), complete()
    with torch.no_grad():
        network.state_rate.weight.zero_()
        network.state_rate.bias.fill_(-1.0)
    gru = copy_cell(network.cell, nn.GRU(2 * CHANNELS, 4, batch_first=True).double())
    _, state = gru(with_mask(given), network.initial.bias.tanh().expand(1, 2, -1).contiguous())
    assert_close(network.summarize(network.read(given)), state[0], **EXACT)


def test_gru_d_is_its_equations():
    network, sequences = build("gru-d"), stays()
    readings = read(batch(sequences), CHANNELS, STATIC)
    found, initial, gaps = network.summarize(readings), network.initial(readings.static), readings.gaps() / 48
    for i, length in enumerate(sequences.lengths):
        state, last = initial[i], torch.zeros(CHANNELS, dtype=torch.float64)
        for step in range(length):
            delta, seen = gaps[i, step], readings.observed[i, step]
            kept = torch.exp(-torch.clamp(network.input_rate * delta + network.input_offset, min=0))
            last = torch.where(seen, readings.values[i, step], last)
            x = torch.where(seen, last, kept * last)
            rate = network.state_rate.weight @ delta + network.state_rate.bias
            state = torch.exp(-torch.clamp(rate, min=0)) * state
            state = network.cell(torch.cat([x, seen.double()]), state)
        assert_close(found[i], state, **EXACT)


@torch.no_grad()
def test_gru_d_forgets_with_time():
    """A channel's value counts for nothing when it was observed long ago."""
    network = build("gru-d", n_static=0)
    with torch.no_grad():
        network.input_rate.fill_(1.0)
        network.state_rate.weight.fill_(1.0)
    values = np.full((2, CHANNELS), np.nan)
    values[1, 0] = 0.5

    def logits(first, wait):
        values[0] = first
        return network(batch(Sequences.from_list([values], [np.array([0.0, wait])])))

    assert float((logits(1.0, 1.0) - logits(-1.0, 1.0)).abs().max()) > 1e-3
    assert_close(logits(1.0, 1e4), logits(-1.0, 1e4), **EXACT)


def test_phased_lstm_with_open_gates_is_an_lstm():
    """A gate is fully open in the middle of its open part: at half past, with a period of 1."""
    times = [np.arange(5) + 0.5, 2.0 * np.arange(5) + 3.5]
    network, given = build("phased-lstm", n_static=0), complete(times)
    with torch.no_grad():
        network.gate.log_period.zero_()
        network.gate.shift.zero_()
        network.gate.ratio_logit.fill_(50.0)
    lstm = copy_cell(network.cell, nn.LSTM(2 * CHANNELS, 4, batch_first=True).double())
    initial = network.initial.bias.tanh().expand(1, 2, -1).contiguous()
    outputs, _ = lstm(with_mask(given), (initial, torch.zeros_like(initial)))
    assert_close(network.summarize(network.read(given)), outputs[:, -1], **EXACT)


def test_phased_lstm_with_closed_gates_stands_still():
    network, given = build("phased-lstm"), batch(stays())
    with torch.no_grad():
        network.gate.ratio_logit.fill_(-700.0)
    assert_close(network.summarize(network.read(given)), network.initial(given.static.nan_to_num()), **EXACT)


@pytest.mark.parametrize("training", [False, True])
def test_time_gate_rises_falls_and_leaks(training):
    gate = TimeGate(1, 48.0).double().train(training)
    with torch.no_grad():
        gate.log_period.fill_(np.log(10.0))
        gate.shift.fill_(3.0)
        gate.ratio_logit.fill_(np.log(0.4 / 0.6))
    times = torch.tensor([3.0, 4.0, 5.0, 6.0, 6.5, 7.5, 12.0, 14.0, -6.0], dtype=torch.float64)
    leak = LEAK if training else 0.0
    expected = [0, 0.5, 1, 0.5, 0.25, leak * 0.45, leak * 0.9, 0.5, 0.5]
    assert_close(gate(times)[:, 0], torch.tensor(expected, dtype=torch.float64), **EXACT)
