"""The operations of the context of a stream, one by one, against those on the whole sequence so far."""

import pytest
import torch
from torch.testing import assert_close

from seq2tens import functional as F
from seq2tens.nn import LS2T, MaskedConv, Whole
from seq2tens.nn.streaming.live import Live, Push, owned

STEPS, BATCH = 13, 2
CPU = torch.device("cpu")


def draw():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(BATCH, STEPS, 3, dtype=torch.float64, generator=generator)


def by_step(operation, **options):
    """What an operation gives at the end of each step, from states that are carried along."""
    x, states, outputs = draw(), (), []
    for step in range(STEPS):
        live = Live(Push(BATCH, step, 1, 1, 0, False), states, CPU, **options)
        outputs.append(operation(live, live.enter(x[:, step : step + 1])))
        states = tuple(live.after)
    return outputs


def so_far():
    return [draw()[:, : step + 1] for step in range(STEPS)]


def test_mean():
    means = by_step(lambda live, x: live.mean(x))
    assert_close(means, [x.mean(1) for x in so_far()], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mode", ["index", "centred"])
def test_clock(mode):
    times = torch.cat(by_step(lambda live, x: live.clock(x, mode), length=STEPS), dim=1)
    assert_close(times, F.time_embedding(draw()[..., :0], mode=mode), rtol=1e-12, atol=1e-12)


def test_halo_holds_the_steps_before():
    x = torch.nn.functional.pad(draw(), (0, 0, 4, 0))
    for step, actual in enumerate(by_step(lambda live, x: live.halo(x, 4, 0))):
        assert_close(actual, x[:, step : step + 5], rtol=0, atol=0)


@pytest.mark.parametrize("constants", [None, {}], ids=["trainable", "prepared"])
@pytest.mark.parametrize("return_sequences", [True, False])
def test_recursion(constants, return_sequences):
    layer = LS2T(3, 4, 3, decay=0.9, weights="independent", return_sequences=return_sequences).double()
    with torch.no_grad():
        outputs = by_step(lambda live, x: live.ls2t(layer, x), constants=constants)
        expected = [Whole().ls2t(layer, x) for x in so_far()]
    expected = [levels[:, -1:] if return_sequences else levels for levels in expected]
    assert_close(outputs, expected, rtol=1e-10, atol=1e-10)


def test_a_convolution_that_looks_back():
    convolution = MaskedConv(3, 2, 4).double()
    with torch.no_grad():
        outputs = torch.cat(by_step(lambda live, x: live.convolve(convolution, x, 3, 0)), dim=1)
        assert_close(outputs, Whole().convolve(convolution, draw(), 3, 0), rtol=1e-12, atol=1e-12)


def test_a_push_of_several_ends_has_a_window_for_each():
    """Ends two steps apart, with three provisional steps: windows end one after the other."""
    x = draw()[:, :8]
    live = Live(Push(BATCH, 0, 2, 4, 3, False), (), CPU)
    windows = live.enter(x)
    assert windows.shape == (BATCH * 4, 5, 3)
    padded = torch.nn.functional.pad(x, (0, 0, 3, 0))
    for row in range(BATCH):
        for end in range(4):
            assert_close(windows[4 * row + end], padded[row, 2 * end : 2 * end + 5], rtol=0, atol=0)
    assert live.push.positions(CPU)[:4, -1].tolist() == [1, 3, 5, 7]
    assert_close(live.after[0], x[:, -3:], rtol=0, atol=0)


def test_a_state_does_not_keep_a_long_push_alive():
    whole = torch.zeros(1000)
    assert owned(whole[:5], whole).untyped_storage().nbytes() == 20
    assert owned(whole[:100], whole).data_ptr() == whole.data_ptr()
