"""Streams give, cut anywhere, what modules give for the steps so far."""

import math
from functools import cache

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from nn.streaming.streams import EXACT, MODULES, STEPS, away_from_initial, build, draw, fed, prefixes
from seq2tens import functional as F
from seq2tens.nn import (
    FCN,
    FCNLS2T,
    LS2T,
    DeepLS2T,
    LS2TBlock,
    MaskedConv,
    ResNet,
    Stream,
    TimeEmbedding,
)

every_module = pytest.mark.parametrize("name", MODULES)


@cache
def expectation(name, batch):
    module, x = build(name), draw(batch, STEPS, 3)
    return module, x, prefixes(name, module, x)


cuts = st.lists(st.integers(0, STEPS), max_size=6)


@every_module
@given(cuts=cuts, batch=st.sampled_from([1, 3]))
def test_every_cut_gives_what_the_module_gives_for_the_steps_so_far(name, cuts, batch):
    module, x, expected = expectation(name, batch)
    stream = Stream(module)
    assert_close(torch.cat(fed(stream, x, cuts), dim=1), expected, **EXACT)
    assert stream.steps == STEPS


@every_module
def test_one_step_at_a_time(name):
    module, x = build(name), draw(2, STEPS, 3)
    pieces = fed(Stream(module), x, range(1, STEPS))
    assert all(piece.shape[:2] == (2, 1) for piece in pieces)
    assert_close(torch.cat(pieces, dim=1), prefixes(name, module, x), **EXACT)


@every_module
def test_the_last_output_alone(name):
    module, x = build(name), draw(2, STEPS, 3)
    expected, stream = prefixes(name, module, x), Stream(module)
    for start, stop in [(0, 1), (1, 4), (4, 21), (21, 22), (22, STEPS)]:
        y = stream.push(x[:, start:stop], last=True)
        assert_close(y, expected[:, stop - 1 : stop], **EXACT)


@st.composite
def networks(draw_from):
    """A network of random sizes that needs no clock."""
    kind = draw_from(st.sampled_from(["deep", "fcn", "resnet", "fcn-ls2t"]))
    channels, width, depth, order = (draw_from(st.integers(1, n)) for n in (3, 17, 3, 3))
    weights = draw_from(st.sampled_from(["recursive", "independent"]))
    torch.manual_seed(draw_from(st.integers(0, 99)))
    made = {
        "deep": lambda: DeepLS2T(channels, width, depth, order, weights=weights),
        "fcn": lambda: FCN(channels, width),
        "resnet": lambda: ResNet(channels, [width] * depth),
        "fcn-ls2t": lambda: FCNLS2T(channels, 3, width, depth, order, weights=weights, time_embedding=False),
    }[kind]()
    return away_from_initial(made), channels


@given(network=networks(), cuts=cuts)
def test_random_networks(network, cuts):
    module, channels = network
    x = draw(2, STEPS, channels)
    pieces = torch.cat(fed(Stream(module), x, cuts), dim=1)
    module.eval()
    with torch.no_grad():
        for t in (1, 2, 7, 8, STEPS):
            assert_close(pieces[:, t - 1], module(x[:, :t]), **EXACT)


def test_many_steps_are_taken_in_blocks(monkeypatch):
    module, x = build("fcn-ls2t"), draw(2, STEPS, 3)
    monkeypatch.setattr("seq2tens.nn.streaming.stream.BLOCK", 8)  # 4 steps of 2 sequences
    expected = prefixes("fcn-ls2t", module, x)
    assert_close(Stream(module).push(x), expected, **EXACT)
    assert_close(Stream(module).push(x, last=True), expected[:, -1:], **EXACT)


@given(cuts=cuts, steps=st.sampled_from([1, 3, 7, 8, STEPS]))
def test_sequences_that_look_ahead_come_when_they_are_final(cuts, steps):
    torch.manual_seed(0)
    module, x = away_from_initial(FCN(3, 4, return_sequences=True)).eval(), draw(2, steps, 3)
    stream = module.stream()
    pieces = fed(stream, x, [min(cut, steps) for cut in cuts])
    late = max(0, steps - stream.ahead)
    assert sum(piece.shape[1] for piece in pieces) == late
    whole = torch.cat([*pieces, stream.finish()], dim=1)
    with torch.no_grad():
        assert_close(whole, module(x), **EXACT)
    assert_close(stream.finish(), whole[:, late:], rtol=0, atol=0)  # only a look


def test_a_convolution_by_itself_and_a_finish_without_rest():
    torch.manual_seed(0)
    module, x = away_from_initial(nn.Sequential(MaskedConv(3, 4, 4))).eval(), draw(1, 9, 3)
    stream = Stream(module)
    y = torch.cat([stream.push(x[:, :5]), stream.push(x[:, 5:]), stream.finish()], dim=1)
    with torch.no_grad():
        assert_close(y, module(x), **EXACT)
    causal = LS2T(3, 4, 2, return_sequences=False).stream()
    causal.push(torch.randn(2, 3, 3))
    assert causal.finish().shape == (2, 0, 2, 4)


CLOCKED = {
    "fcn-ls2t": lambda: FCNLS2T(3, 4, 5, 2),
    "fcn": lambda: FCN(3, 4, time_embedding=True),
    "block-index": lambda: LS2TBlock(3, 4, 2, time="index", return_sequences=False),
    "block-centred": lambda: LS2TBlock(3, 4, 2, time="centred", return_sequences=False),
    "sequential": lambda: nn.Sequential(TimeEmbedding("centred"), LS2T(4, 4, 2, return_sequences=False)),
}


def build_clocked(name):
    torch.manual_seed(0)
    return away_from_initial(CLOCKED[name]()).eval()


@pytest.mark.parametrize("name", CLOCKED)
@pytest.mark.parametrize("length", [1, 2, 19])
def test_a_clock_runs_over_the_length(name, length):
    module, x = build_clocked(name), draw(2, length, 3)
    stream = Stream(module, length=length)
    pieces = torch.cat(fed(stream, x, [length // 2, length // 3]), dim=1)
    with torch.no_grad():
        assert_close(pieces[:, -1], module(x), **EXACT)
    with pytest.raises(ValueError, match=f"beyond `length` = {length} steps, got {length + 1}"):
        stream.push(x[:, :1])


@pytest.mark.parametrize("name", CLOCKED)
def test_before_the_end_the_clock_is_that_of_the_whole_length(name, monkeypatch):
    module, x = build_clocked(name), draw(2, 19, 3)
    pieces = Stream(module, length=19).push(x)
    relative_time = F.relative_time

    def with_the_clock_of_the_whole(x, mask, mode):
        """As if more steps were to come."""
        return relative_time(x.new_zeros(x.shape[0], 19, 0), None, mode)[:, : x.shape[1]]

    for place in ("seq2tens.functional", "seq2tens.functional.paths"):
        monkeypatch.setattr(f"{place}.relative_time", with_the_clock_of_the_whole)
    with torch.no_grad():
        for t in (1, 5, 12):
            assert_close(pieces[:, t - 1], module(x[:, :t]), **EXACT)


@pytest.mark.parametrize("name", CLOCKED)
def test_a_clock_without_length_is_explained(name):
    with pytest.raises(
        ValueError, match=r"`length` must be given .* build the network with `time_embedding=F"
    ):
        Stream(build_clocked(name))


def test_training_mode_and_later_training_change_nothing():
    module, x = build("fcn-ls2t-independent"), draw(2, 9, 3)
    expected = prefixes("fcn-ls2t-independent", module, x)
    stream = module.train().stream()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(1.0)
    assert module.training
    y = stream.push(x.requires_grad_())
    assert_close(y, expected, **EXACT)
    assert not y.requires_grad
    head = nn.Linear(15, 2).double()
    head(y).sum().backward()  # what comes out can be trained on
    assert head.weight.grad is not None


def test_a_nan_stays_in_its_sequence():
    module, x = build("fcn-ls2t"), draw(2, 20, 3)
    x[0, 9, 1] = math.nan
    y = module.stream().push(x)
    assert y[0, 9:].isnan().any(-1).all()
    assert not y[0, :9].isnan().any()
    assert_close(y[1:], prefixes("fcn-ls2t", module, x[1:]), **EXACT)


def test_results_have_the_dtype_of_the_module():
    x = torch.randn(2, 5, 3)
    for dtype, expected in [(torch.float32, torch.float32), (torch.float16, torch.float32)]:
        assert DeepLS2T(3, 4, 1).to(dtype).stream().push(x.to(dtype)).dtype == expected
    module = DeepLS2T(3, 4, 2).eval()
    with torch.no_grad():
        assert_close(module.stream().push(x)[:, -1], module(x))


def test_a_million_steps_in_single_precision_do_not_drift():
    torch.manual_seed(0)
    module = DeepLS2T(2, 4, 2, 2)
    with torch.no_grad():
        for block in module.blocks:
            block.ls2t.bias.uniform_(-0.1, 0.1)
    x = torch.randn(1, 10**6, 2, generator=torch.Generator().manual_seed(0))
    stream = module.stream()
    for part in x.split(30_000, dim=1):
        y = stream.push(part, last=True)
    assert y.dtype == torch.float32
    with torch.no_grad():
        expected = module.double().eval()(x.double())
    error = (y[:, 0] - expected).abs().max() / expected.abs().max()
    assert error < 1e-6


def test_normalisation_is_folded_into_convolutions_where_nobody_looks():
    module, x, seen = away_from_initial(FCN(3, 4)).eval(), draw(1, 9, 3), []
    plain = Stream(module)
    first, second, third = module.convolutions.blocks
    second.norm.register_forward_hook(lambda norm, inputs, output: seen.append(type(norm).__name__))
    watched = Stream(module)
    seen.clear()  # of the search for the reach
    assert_close(watched.push(x), plain.push(x))
    assert seen == ["MaskedBatchNorm"]
    assert [block.norm is None for block in watched._module.convolutions.blocks] == [True, False, True]
    assert all(block.norm is None for block in plain._module.convolutions.blocks)
    assert all(block.norm is not None for block in (first, second, third))
