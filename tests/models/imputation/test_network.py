"""Features, network, hiding and loss of the gap filler, against definitions written out."""

import numpy as np
import pytest
import torch

from seq2tens.data import Sequences
from seq2tens.models.imputation import (
    LEVELS,
    GapBatch,
    GapFiller,
    GapSource,
    PinballLoss,
    hidden_entries,
    look_back,
)
from seq2tens.models.imputation import network as network_module
from seq2tens.models.imputation.loss import pinball
from seq2tens.models.imputation.network import REACH, local_level, neighbours
from seq2tens.models.imputation.parts import by_channel, straight_lines

BATCH, TIME, CHANNELS, STATIC = 4, 11, 3, 2


@pytest.fixture
def batch():
    """Sequences of 11, 7, 1 and 3 steps with gaps, irregular times and static features, in float64."""
    rng = np.random.default_rng(0)
    lengths = [11, 7, 1, 3]
    values = [
        np.where(rng.random((n, CHANNELS)) < 0.4, np.nan, rng.normal(size=(n, CHANNELS))) for n in lengths
    ]
    times = [np.cumsum(rng.random(n)) for n in lengths]
    X = Sequences.from_list(values, times, rng.normal(size=(BATCH, STATIC)))
    return GapSource(X, np.isnan(X.values), torch.float64).batch(torch.arange(BATCH))


@pytest.fixture
def network():
    torch.manual_seed(0)
    return GapFiller(CHANNELS, STATIC, width=8, functionals=4, hidden=8).double().eval()


def test_features_are_those_of_the_definition(batch):
    x, _ = look_back(batch.values, batch.observed, batch.times)
    assert x.shape == (BATCH, TIME, 6 * CHANNELS + 1)
    features = by_channel(x, CHANNELS)
    for b, length in enumerate(batch.lengths.tolist()):
        for t in range(length):
            for c in range(CHANNELS):
                seen = [s for s in range(t) if batch.observed[b, s, c]]
                own, earlier = batch.values[b, t, c], batch.values[b, seen, c]
                last = earlier[-1] if seen else torch.tensor(0.0)
                since = batch.times[b, t] - batch.times[b, seen[-1] if seen else 0]
                expected = [
                    own if batch.observed[b, t, c] else last,
                    float(batch.observed[b, t, c]),
                    since.log1p(),
                    float(bool(seen)),
                    earlier.sum() / (len(seen) + 1),
                    np.log1p(len(seen)),
                ]
                torch.testing.assert_close(features[b, t, c], torch.tensor(expected, dtype=torch.float64))
    gaps = batch.times[0, 1:] - batch.times[0, :-1]
    torch.testing.assert_close(x[0, 1:, -1], gaps.log1p())


def test_features_in_pieces_are_those_of_the_whole(batch):
    whole, end = look_back(batch.values, batch.observed, batch.times)
    past, parts = None, []
    for piece in ([0], [1, 2, 3], [4, 5], [6, 7, 8, 9, 10]):
        x, past = look_back(batch.values[:, piece], batch.observed[:, piece], batch.times[:, piece], past)
        parts.append(x)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=0, atol=1e-12)
    for name, a, b in zip(end._fields, past, end, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12, msg=name)


def test_straight_lines_are_those_of_numpy(batch):
    back, ahead = neighbours(batch)
    line, _ = straight_lines(by_channel(back, CHANNELS), by_channel(ahead, CHANNELS))
    for b, length in enumerate(batch.lengths.tolist()):
        for c in range(CHANNELS):
            seen = np.flatnonzero(batch.observed[b, :length, c])
            missing = np.flatnonzero(~batch.observed[b, :length, c])
            times, values = batch.times[b].numpy(), batch.values[b, :, c].numpy()
            expected = np.interp(times[missing], times[seen], values[seen]) if len(seen) else 0 * missing
            np.testing.assert_allclose(line[b, missing, c], expected, atol=1e-12)


def test_the_causal_half_does_not_see_the_future(batch, network):
    entries = batch.hidden.nonzero(as_tuple=True)
    early = entries[1] < 5
    first = network(batch.masked(batch.hidden), entries)
    changed = batch._replace(
        values=torch.where(torch.arange(TIME)[:, None] > 4, batch.values + 1, batch.values)
    )
    second = network(changed.masked(changed.hidden), entries)
    assert torch.equal(first.past[early], second.past[early])
    assert not torch.allclose(first.both[early], second.both[early])


def test_levels_are_those_of_the_definition(monkeypatch):
    rng = np.random.default_rng(0)
    values, observed = rng.normal(size=(2, 9, CHANNELS)), rng.random((2, 9, CHANNELS)) < 0.5
    for reach in (REACH, 2):
        monkeypatch.setattr(network_module, "REACH", reach)
        level, count = local_level(torch.tensor(values), torch.tensor(observed))
        for t in range(9):
            around = slice(max(t - reach, 0), t + reach + 1)
            number = observed[:, around].sum(axis=1)
            total = np.where(observed, values, 0)[:, around].sum(axis=1)
            np.testing.assert_array_equal(count[:, t], number)
            np.testing.assert_allclose(level[:, t], total / (number + 1), atol=1e-12)


def test_the_course_at_another_level_is_filled_in_the_same_way(network):
    """With many values the median moves with the level, but for a small part: levels are shrunk."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(1, 250, CHANNELS))
    hidden = torch.tensor(rng.random(values.shape) < 0.2)
    static = torch.zeros(1, STATIC, dtype=torch.float64)
    filled = [
        network.predict(network.encode(batch.masked(hidden)), hidden.nonzero(as_tuple=True))
        for shift in (0.0, 5.0)
        for batch in [
            GapBatch(
                torch.tensor(values + shift),
                ~torch.zeros_like(hidden),
                torch.arange(250.0)[None].double(),
                static=static,
            )
        ]
    ]
    torch.testing.assert_close(filled[1], filled[0] + 5, rtol=0, atol=0.1)


def test_quantiles_rise(batch, network):
    filled = network(batch.masked(batch.hidden), batch.hidden.nonzero(as_tuple=True))
    for quantiles in filled:
        assert quantiles.shape == (int(batch.hidden.sum()), len(LEVELS))
        assert (quantiles.diff(dim=1) > 0).all()


def test_the_causal_half_can_be_streamed(batch, network):
    entries = batch.hidden.nonzero(as_tuple=True)
    expected = network(batch.masked(batch.hidden), entries).past
    stream, past, outputs = network.causal.stream(), None, []
    for step in range(TIME):
        one = slice(step, step + 1)
        x, past = look_back(batch.values[:, one], batch.observed[:, one], batch.times[:, one], past)
        outputs.append(stream.push(torch.cat([x, batch.static[:, None]], dim=-1)))
    quantiles = torch.cat(outputs, dim=1).unflatten(-1, (CHANNELS, len(LEVELS)))
    torch.testing.assert_close(quantiles[entries], expected, rtol=0, atol=1e-10)


def test_derivatives(batch, network):
    entries = batch.hidden.nonzero(as_tuple=True)

    def median(values):
        filled = network(batch._replace(values=values).masked(batch.hidden), entries)
        return filled.both.sum() + filled.past.sum()

    assert torch.autograd.gradcheck(median, batch.values.clone().requires_grad_())


@pytest.mark.parametrize("hide", ["points", "blocks", "channels", "mixed", [1]])
def test_what_is_hidden(hide):
    torch.manual_seed(0)
    observed = torch.rand(200, 20, CHANNELS) < 0.8
    hidden = hidden_entries(observed, hide)
    assert not (hidden & ~observed).any()
    rate = hidden.sum((1, 2)) / observed.sum((1, 2))
    assert 0.02 < rate.mean() < 0.5
    if hide == "channels":
        whole = hidden.sum(1)[hidden.any(1)]
        assert torch.equal(whole, observed.sum(1)[hidden.any(1)])
    if hide == "blocks":
        for b in range(200):
            for c in range(CHANNELS):
                steps = hidden[b, :, c].nonzero()[:, 0]
                between = observed[b, steps[0] : steps[-1] + 1, c] if len(steps) else observed[b, :0, c]
                assert int(between.sum()) == len(steps)
    if hide == [1]:
        assert not hidden[:, :, [0, 2]].any()


def test_the_loss_is_least_at_the_quantiles():
    torch.manual_seed(0)
    truth = torch.randn(4000, dtype=torch.float64)
    normal = torch.distributions.Normal(0.0, 1.0).icdf(torch.tensor(LEVELS, dtype=torch.float64))
    best = pinball(normal.expand(4000, -1), truth).mean()
    for change in (0.2 * torch.eye(len(LEVELS), dtype=torch.float64)).repeat(2, 1) * torch.tensor(
        [1.0] * len(LEVELS) + [-1.0] * len(LEVELS)
    )[:, None]:
        assert pinball((normal + change).expand(4000, -1), truth).mean() > best


def test_nothing_to_hide_is_no_loss(network):
    X = Sequences(np.full((5, CHANNELS), np.nan), np.array([0, 5]), static=np.zeros((1, STATIC)))
    loss, weight = PinballLoss("mixed")(network, GapSource(X, dtype=torch.float64).batch(torch.arange(1)))
    assert loss == 0
    assert weight == 1
    loss.backward()
