"""How far modules look ahead, found by running them."""

import pytest
import torch
from torch import nn

from seq2tens.nn import FCN, LS2T, BiLS2T, DeepLS2T, Difference, Lags, ResNet, TimeEmbedding
from seq2tens.nn.context import NotInContext
from seq2tens.nn.streaming.probe import Reach, Refusals, find_reach

REFUSALS = Refusals(clock="no clock, got {mode!r}", future="no future, got {name}")


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (LS2T(3, 4, 2), Reach(3, 0, True)),
        (LS2T(3, 4, 2, return_sequences=False), Reach(3, 0, False)),
        (DeepLS2T(3, 4, 2), Reach(3, 0, False)),
        # kernels of 8, 5 and 3 steps look 4 + 2 + 1 steps ahead
        (FCN(3, 4), Reach(3, 7, False)),
        (FCN(3, 4, return_sequences=True), Reach(3, 7, True)),
        (ResNet(3, (4, 6)), Reach(3, 14, False)),
        (nn.Sequential(FCN(2, 4, return_sequences=True), LS2T(4, 3, 2)), Reach(2, 7, True)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_reach(module, expected):
    assert find_reach(module.eval(), REFUSALS) == expected


def test_channels_that_no_module_tells_are_tried():
    """`Lags` doubles the channels before the layer, and tells none itself."""
    module = nn.Sequential(Lags([0, 2]), LS2T(6, 4, 2)).eval()
    assert find_reach(module, REFUSALS) == Reach(3, 0, True)
    assert find_reach(Difference(), REFUSALS, channels=5) == Reach(5, 0, True)


def test_a_clock_needs_the_length():
    module = nn.Sequential(TimeEmbedding(), LS2T(4, 4, 2)).eval()
    with pytest.raises(NotInContext, match="no clock, got 'index'"):
        find_reach(module, REFUSALS, channels=3)
    assert find_reach(module, REFUSALS, channels=3, length=100) == Reach(3, 0, True)


def test_who_looks_at_the_future_is_refused():
    with pytest.raises(NotInContext, match="no future, got reverse=True"):
        find_reach(BiLS2T(3, 4, 2).eval(), REFUSALS)


def test_the_first_error_is_that_of_the_declared_channels():
    class Broken(nn.Module):
        in_features = 3

        def forward(self, x, context):
            raise ValueError(f"refused with {x.shape[2]} channels")

    with pytest.raises(ValueError, match="refused with 3 channels"):
        find_reach(Broken(), REFUSALS)


def test_probing_computes_no_gradients():
    module = LS2T(3, 4, 2).eval()
    find_reach(module, REFUSALS)
    assert all(parameter.grad is None for parameter in module.parameters())
    assert torch.is_grad_enabled()
