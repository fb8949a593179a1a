import math

import numpy as np
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence
from torch.testing import assert_close

from models.irregular.stays import EXACT, batch, build, stays
from seq2tens.models.irregular.latent_ode import divergence
from seq2tens.models.irregular.ode import between, rk4_step, trajectory


def rotation(state):
    """A circle with period 2π."""
    return torch.stack([-state[:, 1], state[:, 0]], dim=1)


def error(n_steps):
    start = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    end = trajectory(rotation, start, 2.0, n_steps)[:, -1]
    return float((end - torch.tensor([[math.cos(2.0), math.sin(2.0)]], dtype=torch.float64)).norm())


def test_solver_is_of_order_four():
    orders = [math.log2(error(n) / error(2 * n)) for n in (8, 16, 32)]
    np.testing.assert_allclose(orders, 4, atol=0.1)


def test_rows_advance_by_their_own_spans():
    start = torch.tensor([[1.0, 0.0], [0.5, 2.0]], dtype=torch.float64)
    spans = torch.tensor([[0.1], [-0.3]], dtype=torch.float64)
    both = rk4_step(rotation, start, spans)
    for i in range(2):
        assert_close(both[i : i + 1], rk4_step(rotation, start[i : i + 1], float(spans[i])), **EXACT)


def test_between_is_linear_and_stays_inside():
    states = torch.tensor([[[0.0], [2.0], [6.0]]], dtype=torch.float64)
    positions = torch.tensor([[0.0, 0.25, 1.0, 1.5, 2.0, 5.0, -1.0]], dtype=torch.float64)
    expected = torch.tensor([0.0, 0.5, 2.0, 4.0, 6.0, 6.0, 0.0], dtype=torch.float64)
    assert_close(between(states, positions)[0, :, 0], expected, **EXACT)


def test_encoder_is_a_loop_backwards_in_time():
    network, sequences = build("latent-ode"), stays()
    readings, encoder = network.read(batch(sequences)), network.encoder
    found, initial = encoder(readings, 48.0), encoder.initial(readings.static)
    for i, length in enumerate(sequences.lengths):
        state, now = initial[i : i + 1], float(readings.times[i, length - 1])
        for step in reversed(range(length)):
            time = float(readings.times[i, step])
            state = rk4_step(encoder.field, state, (time - now) / 48)
            now = time
            if bool(readings.observed[i, step].any()):
                row = torch.cat([readings.values[i, step], readings.mask[i, step]])
                state = encoder.cell(row[None], state)
        state = rk4_step(encoder.field, state, -now / 48)
        assert_close(found[i], state[0], **EXACT)


def test_encoder_without_motion_is_a_gru():
    network, given = build("latent-ode", n_static=0), batch(stays(n_static=0), [0])
    nn.init.zeros_(network.encoder.field[2].weight)
    nn.init.zeros_(network.encoder.field[2].bias)
    readings = network.read(given._replace(observed=torch.ones_like(given.observed)))
    gru = nn.GRU(6, 4, batch_first=True).double()
    with torch.no_grad():
        for name, value in network.encoder.cell.named_parameters():
            getattr(gru, f"{name}_l0").copy_(value)
    rows = torch.cat([readings.values, readings.mask], dim=-1).flip(1)
    _, state = gru(rows, network.encoder.initial(readings.static)[None])
    assert_close(network.encoder(readings, 48.0), state[0], **EXACT)


def test_divergence_is_that_of_torch():
    mean, log_scale = torch.randn(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = kl_divergence(Normal(mean, log_scale.exp()), Normal(0.0, 1.0)).sum(-1)
    assert_close(divergence(mean, log_scale), expected, **EXACT)


def test_auxiliary_loss_is_the_bound_of_torch_distributions():
    network, given = build("latent-ode", auxiliary_weight=1.0), batch(stays())
    torch.manual_seed(5)
    found = network.auxiliary_loss(given)
    readings = network.read(given)
    mean, log_scale = network.encode(readings)
    torch.manual_seed(5)
    start = mean + log_scale.exp() * torch.randn_like(mean)
    likelihood = Normal(network.decode(start, readings.times), network.log_noise.exp()).log_prob(
        readings.values
    )
    bound = likelihood[readings.observed].sum() - divergence(mean, log_scale).sum()
    assert_close(found, -bound / int(readings.observed.sum()), **EXACT)


def test_decoder_follows_the_equation():
    """With a rotation for the right-hand side and the identity for the decoder, curves are cosines."""
    network = build("latent-ode", latent=2, n_grid=200)
    network.field = nn.Linear(2, 2, bias=False).double()
    network.decoder = nn.Identity()
    with torch.no_grad():
        network.field.weight.copy_(torch.tensor([[0.0, -1.0], [1.0, 0.0]]))
    times = torch.tensor([[0.0, 13.0, 48.0]], dtype=torch.float64)
    curves = network.decode(torch.tensor([[1.0, 0.0]], dtype=torch.float64), times)
    assert_close(curves[0, :, 0], (times[0] / 48).cos(), rtol=0, atol=1e-5)
