"""What every network for irregular sequences must satisfy."""

import copy
import math
import pickle

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from models.irregular.stays import CHANNELS, EXACT, STATIC, batch, build, stays
from seq2tens.data import Sequences, collate
from seq2tens.models.irregular import NETWORKS

every_network = pytest.mark.parametrize("name", NETWORKS)
with_auxiliary = [name for name, network in NETWORKS.items() if hasattr(network, "auxiliary_loss")]


def test_names():
    assert list(NETWORKS) == [
        "gru-simple", "gru-d", "phased-lstm", "ip-nets", "transformer", "seft", "latent-ode",
    ]  # fmt: skip
    assert with_auxiliary == ["ip-nets", "latent-ode"]


@every_network
def test_rows_do_not_depend_on_each_other(name):
    network, sequences = build(name), stays()
    together = network(batch(sequences))
    assert together.shape == (4, 2)
    for i in range(4):
        assert_close(network(batch(sequences, [i])), together[i : i + 1], **EXACT)
    assert_close(network(batch(sequences, [2, 0])), together[[2, 0]], **EXACT)
    assert together.std(0).min() > 1e-4


@every_network
def test_padding_may_hold_anything(name):
    network, given = build(name), batch(stays())
    more = 3
    outside = nn.functional.pad(~given.mask, (0, more), value=True)
    dirty = given._replace(
        values=nn.functional.pad(given.values, (0, 0, 0, more)).masked_fill(outside[..., None], math.nan),
        observed=nn.functional.pad(given.observed, (0, 0, 0, more)) | outside[..., None],
        times=nn.functional.pad(given.times, (0, more)).masked_fill(outside, math.inf),
    )
    assert_close(network(dirty), network(given), **EXACT)


@every_network
def test_entries_that_were_not_observed_may_hold_anything(name):
    network, given = build(name), batch(stays())
    dirty = given._replace(values=given.values.masked_fill(~given.observed, math.nan))
    assert_close(network(dirty), network(given), **EXACT)


@every_network
@pytest.mark.parametrize("field", ["values", "times", "static"])
def test_everything_is_looked_at(name, field):
    network, given = build(name, training=True), batch(stays())
    network.dropout.p = 0.0
    inputs = getattr(given, field).clone().requires_grad_()
    torch.manual_seed(0)
    network(given._replace(**{field: inputs})).square().sum().backward()
    assert bool(inputs.grad.isfinite().all())
    assert float(inputs.grad.abs().max()) > 0


@every_network
def test_gradients_are_finite_and_reach_every_parameter(name):
    network, given = build(name, training=True), batch(stays())
    torch.manual_seed(0)
    loss = network(given).square().sum()
    if name in with_auxiliary:
        loss = loss + network.auxiliary_loss(given)
    loss.backward()
    for key, parameter in network.named_parameters():
        assert parameter.grad is not None, key
        assert bool(parameter.grad.isfinite().all()), key
        assert float(parameter.grad.abs().max()) > 0, key


@every_network
def test_logits_pass_gradcheck(name):
    network, given = build(name), batch(stays((3, 2)))
    parameters = [p.detach().clone() for p in network.parameters()]

    def logits(values, static, *weights):
        named = dict(zip(dict(network.named_parameters()), weights, strict=True))
        return torch.func.functional_call(network, named, (given._replace(values=values, static=static),))

    inputs = [t.requires_grad_() for t in (given.values, given.static.nan_to_num(), *parameters)]
    assert torch.autograd.gradcheck(logits, inputs, fast_mode=True)


@every_network
def test_without_static_features_times_and_gaps(name):
    rng = np.random.default_rng(0)
    bare = Sequences.from_list([rng.normal(size=(n, CHANNELS)) for n in (3, 5)])
    counted = Sequences.from_list(list(bare), [np.arange(3.0), np.arange(5.0)])
    network = build(name, n_static=0)
    given = batch(bare)
    assert given.observed is None
    assert given.times is None
    assert_close(network(given), network(batch(counted)), **EXACT)


@every_network
def test_empty_sequences_and_sequences_without_observations(name):
    nothing = Sequences.from_list(
        [np.zeros((0, CHANNELS)), np.full((2, CHANNELS), np.nan), np.ones((1, CHANNELS))],
        [np.zeros(0), np.array([1.0, 2.0]), np.array([3.0])],
        np.full((3, STATIC), np.nan),
    )
    network = build(name, training=True)
    logits = network(batch(nothing))
    loss = logits.sum()
    if name in with_auxiliary:
        loss = loss + network.auxiliary_loss(batch(nothing, [0, 1]))
    loss.backward()
    assert bool(logits.isfinite().all())
    assert all(bool(p.grad.isfinite().all()) for p in network.parameters() if p.grad is not None)
    network.eval()
    assert_close(network(batch(nothing, [0])), network(batch(nothing))[:1], **EXACT)


@every_network
def test_evaluation_is_deterministic_and_copies_agree(name):
    network, given = build(name), batch(stays())
    expected = network(given)
    copies = copy.deepcopy(network), pickle.loads(pickle.dumps(network)), build(name, seed=1)
    copies[2].load_state_dict(network.state_dict())
    for other in copies:
        assert torch.equal(other(given), expected)


@every_network
def test_evaluation_without_gradients_takes_no_other_way(name):
    """Torch has shortcuts for layers without gradients; they must know about padding, too."""
    network, sequences = build(name), stays()
    expected = network(batch(sequences))
    with torch.no_grad():
        assert_close(network(batch(sequences)), expected, **EXACT)
        single = network.float()(collate(sequences))
        assert_close(network(collate(sequences, [0])), single[:1], rtol=1e-4, atol=1e-5)
    assert_close(single.double(), expected, rtol=1e-3, atol=1e-4)


@every_network
def test_sizes(name):
    network = NETWORKS[name](37, 7)
    count = sum(p.numel() for p in network.parameters())
    assert 1e4 < count < 1e5
    assert NETWORKS[name](37, 7, 5, width=16)(batch_of_zeros(2, 4, 37, 7)).shape == (2, 5)


def batch_of_zeros(rows, steps, channels, features):
    arrays, times = [np.zeros((steps, channels), np.float32)] * rows, [np.arange(float(steps))] * rows
    return collate(Sequences.from_list(arrays, times, np.zeros((rows, features))))


@every_network
def test_mistakes(name):
    network, given = build(name), batch(stays())
    with pytest.raises(ValueError, match=r"`batch.values` must have shape .* = \(4, 9, 3\), got \(4, 9, 2\)"):
        network(given._replace(values=given.values[..., :2]))
    with pytest.raises(ValueError, match=r"`batch\.static` must have 2 features, got none"):
        network(given._replace(static=None))
    with pytest.raises(ValueError, match=r"`batch.static` must have shape .* = \(4, 2\), got \(4, 1\)"):
        network(given._replace(static=given.static[:, :1]))
    with pytest.raises(ValueError, match="`n_channels` must be at least 1, got 0"):
        NETWORKS[name](0)
    with pytest.raises(ValueError, match=r"`horizon` must be positive, got 0"):
        NETWORKS[name](3, horizon=0)


@pytest.mark.parametrize("name", with_auxiliary)
def test_auxiliary_loss_is_a_weighted_mean_over_observations(name):
    network, given = build(name), batch(stays())
    torch.manual_seed(0)
    once = network.auxiliary_loss(given)
    assert once.shape == ()
    network.auxiliary_weight = 2.5
    torch.manual_seed(0)
    assert_close(network.auxiliary_loss(given), 2.5 * once, **EXACT)
