import math

import torch
from torch.testing import assert_close

from models.irregular.stays import CHANNELS, EXACT, STATIC, batch, build, stays
from seq2tens.models.irregular.ip_net import HIDDEN, TRANSIENT_RATIO
from seq2tens.models.irregular.readings import read


def brute_force(network, sequence, point):
    """Smooth and transient interpolant and intensity of one sequence at one point of time."""
    module = network.interpolation
    alone, sharp, intensity = ([0.0] * CHANNELS for _ in range(3))
    for channel in range(CHANNELS):
        rate = math.exp(module.log_sharpness[channel].item())
        means = {}
        for factor in (1.0, TRANSIENT_RATIO):
            total = weighted = 0.0
            for time, row in zip(sequence.times, sequence.values, strict=True):
                if not math.isnan(row[channel]):
                    weight = math.exp(-factor * rate * ((point - time) / module.unit) ** 2)
                    total, weighted = total + weight, weighted + weight * row[channel]
            means[factor] = (weighted / total if total else 0.0, total)
        alone[channel], intensity[channel] = means[1.0]
        sharp[channel] = means[TRANSIENT_RATIO][0]
    smooth = [
        sum(
            module.mixing[other, channel].item() * intensity[other] * alone[other]
            for other in range(CHANNELS)
        )
        / sum(intensity)
        for channel in range(CHANNELS)
    ]
    return smooth, [a - b for a, b in zip(sharp, smooth, strict=True)], intensity


def test_interpolation_is_brute_force():
    network, sequences = build("ip-nets"), stays()
    # wide kernels, so that nothing underflows in the loop
    with torch.no_grad():
        network.interpolation.log_sharpness -= 3
    points = torch.tensor([[0.0, 20.0, 47.5]] * 4, dtype=torch.float64)
    found = network.interpolation(read(batch(sequences), CHANNELS, STATIC).observations(), points)
    for i in range(4):
        for k in range(3):
            for mine, expected in zip(
                found, brute_force(network, sequences[i], float(points[i, k])), strict=True
            ):
                assert_close(mine[i, k], torch.tensor(expected, dtype=torch.float64), **EXACT)


@torch.no_grad()
def test_far_from_all_observations_the_nearest_value_stands():
    """Where kernels underflow, weighted means are still means."""
    network, sequences = build("ip-nets"), stays((1, 1))
    values = read(batch(sequences), CHANNELS, STATIC)
    points = torch.full((2, 1), 1e6, dtype=torch.float64)
    smooth, transient, intensity = network.interpolation(values.observations(), points)
    assert float(intensity.abs().max()) == float(smooth.abs().max()) == 0
    assert_close(transient[:, 0], values.values[:, 0], **EXACT)


def test_sharp_kernels_go_through_the_observations():
    network, given = build("ip-nets"), batch(stays())
    with torch.no_grad():
        network.interpolation.log_sharpness.fill_(20.0)
        network.interpolation.mixing.copy_(torch.eye(CHANNELS))
    readings = network.read(given)
    smooth, transient, _ = network.interpolation(readings.observations(), readings.times)
    assert_close((smooth + transient)[readings.observed], readings.values[readings.observed], **EXACT)


def test_auxiliary_loss_measures_what_was_hidden():
    network, given = build("ip-nets", auxiliary_weight=1.0), batch(stays())
    torch.manual_seed(3)
    found = network.auxiliary_loss(given)
    torch.manual_seed(3)
    hidden = given.observed & (torch.rand_like(given.values) < HIDDEN)
    assert 0 < int(hidden.sum()) < int(given.observed.sum())
    visible = given._replace(observed=given.observed & ~hidden)
    smooth, _, _ = network.interpolation(network.read(visible).observations(), given.times)
    assert_close(found, (smooth - given.values)[hidden].square().mean(), **EXACT)
