"""Pictures convolved where something is are pictures convolved everywhere."""

import pytest
import torch
from torch.testing import assert_close

from comparison import named
from seq2tens.models.gpvae import images
from seq2tens.models.gpvae.layers import ImagePreprocessor

FIGURES = {
    "empty": lambda shape: torch.zeros(shape),
    "a corner": lambda shape: torch.zeros(shape).index_fill(1, torch.tensor(0), 0.7),
    "scattered": lambda shape: torch.randn(shape) * (torch.rand(shape) < 0.1),
    "full": torch.randn,
}


def plain(pictures, first, bias, second):
    hidden = torch.nn.functional.conv2d(pictures.permute(0, 3, 1, 2), first, bias, padding=1).relu()
    return torch.nn.functional.conv2d(hidden, second, padding=1).permute(0, 2, 3, 1)


def weights_of(colors, filters=7):
    shapes = (filters, colors, 3, 3), (filters,), (colors, filters, 3, 3)
    return [torch.randn(shape, requires_grad=True) for shape in shapes]


def results(function, pictures, weights, outer):
    y = function(pictures, *weights)
    return named("y dfirst dbias dsecond", (y, *torch.autograd.grad(y, weights, outer)))


@pytest.fixture(autouse=True)
def double():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("size", [(1, 1), (1, 5), (3, 2), (9, 12)])
def test_values_and_gradients_are_those_of_two_convolutions(figure, size):
    pictures = FIGURES[figure]((4, *size, 3))
    weights, outer = weights_of(3), torch.randn(pictures.shape)
    found = results(images.convolved_twice, pictures, weights, outer)
    assert_close(found, results(plain, pictures, weights, outer))


def test_nothing_depends_on_how_many_pictures_are_taken_at_a_time(monkeypatch):
    pictures = FIGURES["scattered"]((5, 6, 4, 2))
    weights, outer = weights_of(2), torch.randn(pictures.shape)
    together = results(images.convolved_twice, pictures, weights, outer)
    monkeypatch.setattr(images, "BLOCK_PIXELS", 50)  # two pictures and a bit
    assert_close(results(images.convolved_twice, pictures, weights, outer), together)


def test_hidden_values_are_of_one_patch_per_busy_pixel():
    pictures = torch.zeros(2, 8, 8, 3)
    pictures[1, 3, 4, 2] = 1.0
    busy, patches = images._patches(pictures)
    assert busy.nonzero().tolist() == [[1, row, column] for row in (2, 3, 4) for column in (3, 4, 5)]
    assert patches.any(1).nonzero().squeeze(1).tolist() == list(range(9))
    assert len(patches) == images.SLICES


@pytest.mark.parametrize("asks", ["gradients of the input", "half precision"])
def test_the_layer_convolves_everywhere_where_it_must(asks, monkeypatch):
    layer, x = ImagePreprocessor((5, 4, 3), width=6), FIGURES["scattered"]((2, 3, 60))
    everywhere = []  # each convolution of all pixels
    layer.first.register_forward_hook(lambda *_: everywhere.append(True))
    expected = layer(x)
    assert not everywhere
    if asks == "half precision":
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert_close(layer.float()(x.float()).double(), expected, rtol=0.1, atol=0.1)
    else:
        assert_close(layer(x.requires_grad_()), expected)
    assert everywhere
